"""Does a part of this line need the user's approval? Judges every command in it, in order.

The line is judged as the words between its separators, not as a tree: whatever the grammar takes them for, each command
must be known, with its words, redirections, assignments and expansions. What is not known here needs approval.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import format_count, quote_text
from tools.shell.archives import find_packed_file, find_split_prefix, find_zipped_files
from tools.shell.awk_programs import find_awk_danger
from tools.shell.compilers import COMPILERS, find_compiled_file
from tools.shell.conditions import join_conditions
from tools.shell.interpreters import INTERPRETERS
from tools.shell.known_commands import BUILDS, READS
from tools.shell.lines import read_line
from tools.shell.place_judge import PlaceJudge
from tools.shell.plain_sources import is_plain_input, is_plain_source, list_inputs
from tools.shell.program_arguments import (
    is_certain,
    is_unknown,
    may_become_option,
    read_argument,
    show_argument,
)
from tools.shell.project_programs import BY_NPX
from tools.shell.sed_scripts import read_sed_call
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.starters import STARTERS, judge_settings
from tools.shell.variables import (
    does_arithmetic,
    judge_assignment,
    judge_export,
    require_own_variable,
    require_plain_expansion,
)
from tools.shell.verdicts import CommandKind, NeedsApproval

MAX_COMMANDS = 25
NOT_JUDGED: Mapping[str, str] = {
    "(": "a function or an array",
    "((": "arithmetic",
    "))": "arithmetic",
    **dict.fromkeys((";;", ";&", ";;&"), "`case`"),
}
OPENING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{"))
CLOSING = frozenset(("fi", "done", "}"))
SUBCOMMANDS = frozenset("git npm pnpm yarn pip pip3 cargo go dotnet bundle composer".split())  # noqa: SIM905
PROGRAM = re.compile(r"[\w./+-]+|\[\[?|:")
PROJECT_PROGRAM = re.compile(r"(?:\./)?(?:\.?venv/bin|node_modules/\.bin|vendor/bin)/([\w.+-]+)")
PLAIN_NAME = re.compile(r"[A-Za-z][\w.+-]*")
WRAPPERS = {"./gradlew": "gradle", "./mvnw": "mvn"}
"""The project's own copy of a build tool."""
ACTIVATE = re.compile(r"(?:\./)?\.?venv/bin/activate")
CHILD = re.compile(r"\w+=\$!")
KILL_SIGNAL = re.compile("-(?:[A-Z]+|[0-9]+)")
KILL_JOB = re.compile("%[0-9]+")
SHELLS = frozenset(("bash", "sh", "dash"))


@dataclass
class LineJudge(PlaceJudge):
    """Judges one line."""

    count: int = 0
    """Commands so far."""
    before: ShellCommand | None = None
    """The command in front of the current one."""
    is_fed: bool = False
    """The current command reads what is in plain sight."""
    children: set[str] = field(default_factory=set[str])
    """Variables that hold the number of a process which the line has started."""

    def judge_line(self, line: ShellLine) -> CommandKind:
        """Judge a line, or one within it. Raises NeedsApproval."""
        return get_widest([self.judge_command(command) for command in join_conditions(line.commands)])

    def judge_command(self, command: ShellCommand) -> CommandKind:
        self.count += 1
        if self.count > MAX_COMMANDS:
            raise NeedsApproval(f"it runs more than {format_count(MAX_COMMANDS, 'command')}")
        if command.joined in NOT_JUDGED:
            raise NeedsApproval(f"{NOT_JUDGED[command.joined]} in a line is not judged")
        if does_arithmetic(command):
            raise NeedsApproval("arithmetic in a line is not judged")
        for expansion in command.expansions:
            require_plain_expansion(expansion)
        before, self.before = self.before, None
        try:
            kinds = [self.judge_line(line) for line in command.nested]
            words = command.words
            self._note_children(words)
            if words and words[0].role is WordRole.KEYWORD:
                words = strip_keywords(words)
            kinds += [self.judge_redirection(word) for word in words if word.role is WordRole.TARGET]
            self.is_fed = _is_fed(words, before)
            kinds.append(self._judge_words([word for word in words if word.role is not WordRole.TARGET]))
            self.note_written(words, is_plain_source(command))
            return get_widest(kinds)
        finally:
            self.before, self.is_fed = command, False

    def _judge_words(self, words: Sequence[ShellWord]) -> CommandKind:
        settings = list(takewhile(lambda word: word.role is WordRole.ASSIGNMENT, words))
        rest = words[len(settings) :]
        if not rest:
            return get_widest([judge_assignment(word, exported=False) for word in settings])
        name = rest[0]
        if not name.known:
            raise NeedsApproval(f"{quote_text(name.source)} could be any program")
        if not PROGRAM.fullmatch(name.source):
            raise NeedsApproval(f"{quote_text(name.source)} is not the plain name of a program")
        if name.text == "export":
            return get_widest(
                [judge_assignment(word, exported=True) for word in settings] + [*map(judge_export, rest[1:])]
            )
        if name.text == "read":  # only `read` itself sees such a separator
            settings = [word for word in settings if not word.source.startswith("IFS=")]
        kinds = [judge_assignment(word, exported=True) for word in settings]
        if not all(word.role is WordRole.WORD for word in rest):
            raise NeedsApproval(_describe_unknown((name.text,)))
        arguments = tuple(read_argument(word) for word in rest)
        return get_widest([*kinds, self._judge_program(arguments)])

    def _note_children(self, words: Sequence[ShellWord]) -> None:
        """Any other word of that name may set the variable to something else, as `read` does."""
        for word in words:
            name, given, _ = word.source.partition("=")
            self.children.discard(name.removesuffix("+"))
            if given and CHILD.fullmatch(word.source):
                self.children.add(name)

    def _judge_program(self, words: Sequence[str]) -> CommandKind:
        """Judge a program with its arguments, also one that another program starts."""
        name, rest = words[0], words[1:]
        if is_unknown(name) or not PROGRAM.fullmatch(name):
            raise NeedsApproval(f"{quote_text(show_argument(name))} could be any program")
        if project := PROJECT_PROGRAM.fullmatch(name):
            self.require_project_folder(name)
            # The project may have put anything there, so it never counts as reading.
            self._judge_program((project[1], *rest))
            return CommandKind.BUILDS
        if name in WRAPPERS:
            self.require_project_folder(name)
            return self._judge_program((WRAPPERS[name], *rest))
        if words[1:] in (("--version",), ("--help",)) and PLAIN_NAME.fullmatch(name) and name not in BUILTIN_NAMES:
            return CommandKind.READS
        if name in READS and READS[name](rest):
            return CommandKind.READS
        if name in BUILDS and BUILDS[name](rest):
            self.require_workspace(name, rest)
            return CommandKind.BUILDS
        if name in JUDGED:
            return JUDGED[name](self, rest)
        if name in STARTERS and (started := STARTERS[name](rest)) is not None:
            settings = judge_settings(rest) if name == "env" else []
            return get_widest([*settings, *map(self._judge_program, started)])
        raise NeedsApproval(_describe_unknown(words))

    def judge_interpreter(self, name: str, words: Sequence[str]) -> CommandKind:
        """Judge code that comes from elsewhere than a file of the workspace or an option."""
        call = INTERPRETERS[name](words)
        if call is None:
            raise NeedsApproval(_describe_unknown((name, *words)))
        is_own = bool(call.module) and call.searches and self.has_module(call.module)
        if not (call.rewrites or is_own or call.script in self.written or (call.reads_input and self.is_fed)):
            raise NeedsApproval(_describe_unknown((name, *words)))
        self.judge_writing(*call.rewrites)
        self.require_workspace(name, call.rest)
        return CommandKind.BUILDS

    def judge_awk(self, words: Sequence[str]) -> CommandKind:
        if danger := find_awk_danger(words):
            raise NeedsApproval(f"`awk` may do more than print: {quote_text(show_argument(danger))}")
        return CommandKind.READS

    def judge_sed(self, words: Sequence[str]) -> CommandKind:
        call = read_sed_call(words)
        if isinstance(call, str):
            raise NeedsApproval(f"`sed` may do more than edit text: {quote_text(show_argument(call))}")
        return self.judge_writing(*call.files) if call.in_place else CommandKind.READS

    def judge_tee(self, words: Sequence[str]) -> CommandKind:
        return self.judge_writing(*(word for word in words if word not in ("-a", "--append")))

    def judge_source(self, words: Sequence[str]) -> CommandKind:
        if len(words) != 1 or not ACTIVATE.fullmatch(words[0]):
            raise NeedsApproval(f"what {quote_text(' '.join(map(show_argument, words)))} contains is not known")
        self.require_project_folder(words[0])
        return CommandKind.BUILDS

    def judge_shell(self, words: Sequence[str]) -> CommandKind:
        """Judge the line in `bash -c LINE`; what follows it are its arguments. `bash -n FILE` runs nothing."""
        if words[:1] == ("-n",) and len(words) > 1 and not any(map(_may_be_option, words[1:])):
            return CommandKind.READS
        if len(words) < 2 or not re.fullmatch("-[eux]*c", words[0]) or not is_certain(words[1]):
            raise NeedsApproval("it starts a shell whose commands are not in the line")
        return self.judge_inner_text(words[1])

    def judge_inner_text(self, text: str) -> CommandKind:
        line = read_line(text)
        if line is None:
            raise NeedsApproval(f"bash may read {quote_text(text)} differently than it looks")
        return self.judge_line(line)

    def judge_compiler(self, words: Sequence[str]) -> CommandKind:
        written = find_compiled_file(words)
        if written is None or not words:
            raise NeedsApproval("a compiler with these words may do more than compile a file")
        return self.judge_writing(written)

    def judge_tar(self, words: Sequence[str]) -> CommandKind:
        packed = find_packed_file(words)
        if packed is None:
            raise NeedsApproval(_describe_unknown(("tar", *words)))
        if not packed:
            self.written.clear()  # the archive may hold a file of that name
        return self.judge_writing(*filter(None, (packed,)))

    def judge_zip(self, words: Sequence[str]) -> CommandKind:
        zipped = find_zipped_files(words)
        if zipped is None:
            raise NeedsApproval(_describe_unknown(("zip", *words)))
        return self.judge_writing(*zipped)

    def judge_split(self, words: Sequence[str]) -> CommandKind:
        prefix = find_split_prefix(words)
        if prefix is None:
            raise NeedsApproval(_describe_unknown(("split", *words)))
        return self.judge_writing(prefix)

    def judge_kill(self, words: Sequence[str]) -> CommandKind:
        """The line may end what it has started itself: a job, or the process whose number it has kept."""
        own = {"$!", '"$!"', *(f"{quote}${name}{quote}" for name in self.children for quote in ("", '"'))}
        for word in words[1 if words[:1] and KILL_SIGNAL.fullmatch(words[0]) else 0 :]:
            if not KILL_JOB.fullmatch(word) and not (is_unknown(word) and show_argument(word) in own):
                raise NeedsApproval(_describe_unknown(("kill", *words)))
        return CommandKind.READS

    def judge_npx(self, words: Sequence[str]) -> CommandKind:
        """Judge `npx tsc`; with others, npx installs what they name. Where nobody types, it takes yes anyway."""
        rest = words[1:] if words[:1] in (("--no-install",), ("--no",), ("--yes",), ("-y",)) else words
        if not rest or rest[0] not in BY_NPX:
            raise NeedsApproval(_describe_unknown(("npx", *words)))
        return self._judge_program(rest)

    def judge_bundle(self, words: Sequence[str]) -> CommandKind:
        """Judge what `bundle exec` starts."""
        if words[:1] == ("exec",) and len(words) > 1:
            self._judge_program(words[1:])
            return CommandKind.BUILDS
        raise NeedsApproval(_describe_unknown(("bundle", *words)))

    def judge_package_runner(self, words: Sequence[str]) -> CommandKind:
        """Judge what `uv run` or `poetry run` starts."""
        if words[:1] != ("run",) or len(words) < 2:
            raise NeedsApproval(
                f"{quote_text(' '.join(map(show_argument, words[:1])))} is not known to only build or test"
            )
        self._judge_program(words[1:])
        return CommandKind.BUILDS


def _judge_as(name: str) -> "Callable[[LineJudge, Sequence[str]], CommandKind]":
    return lambda judge, words: judge.judge_interpreter(name, words)


JUDGED = {
    **dict.fromkeys(("cd", "pushd", "popd"), LineJudge.judge_cd),
    **dict.fromkeys(("awk", "gawk", "mawk"), LineJudge.judge_awk),
    "sed": LineJudge.judge_sed,
    "tee": LineJudge.judge_tee,
    "tar": LineJudge.judge_tar,
    "zip": LineJudge.judge_zip,
    "split": LineJudge.judge_split,
    "kill": LineJudge.judge_kill,
    **dict.fromkeys((".", "source"), LineJudge.judge_source),
    **dict.fromkeys(SHELLS, LineJudge.judge_shell),
    "npx": LineJudge.judge_npx,
    "bundle": LineJudge.judge_bundle,
    **dict.fromkeys(("uv", "poetry", "hatch", "pdm", "pipenv", "rye"), LineJudge.judge_package_runner),
    **dict.fromkeys(COMPILERS, LineJudge.judge_compiler),
    **{name: _judge_as(name) for name in INTERPRETERS},
}


def _is_fed(words: Sequence[ShellWord], before: ShellCommand | None) -> bool:
    """True if everything that a command reads is in plain sight."""
    if inputs := list_inputs(words):
        return all(map(is_plain_input, inputs))
    return before is not None and before.joined == "|" and is_plain_source(before)


def get_widest(kinds: Sequence[CommandKind]) -> CommandKind:
    return CommandKind.BUILDS if CommandKind.BUILDS in kinds else CommandKind.READS


def strip_keywords(words: Sequence[ShellWord]) -> Sequence[ShellWord]:
    """Return the words behind `if`, `do`, `!` and the like."""
    for at, word in enumerate(words):
        if word.role is not WordRole.KEYWORD:
            return words[at:]
        if word.source == "for":
            return _strip_loop(words[at + 1 :])
        if word.source not in OPENING and word.source not in CLOSING:
            raise NeedsApproval(f"{quote_text(word.source)} in a line is not judged")
    return ()


def _strip_loop(words: Sequence[ShellWord]) -> Sequence[ShellWord]:
    """Check the words behind `for`: a name and the values it takes, which run nothing."""
    require_own_variable(words[0].text if words else "")
    for word in words[2:]:
        if word.role is WordRole.WORD and not word.known:
            continue
        read_argument(word)
    return ()


def _may_be_option(word: str) -> bool:
    return word.startswith(("-", "+")) or may_become_option(word)


def _fits_find(words: Sequence[str]) -> bool:
    return STARTERS["find"](words) is not None


def _describe_unknown(words: Sequence[str]) -> str:
    """Name what is not known: a word, if the rest of the command is known without it, or the command."""
    name, rest = words[0], words[1:]
    known = [table[name] for table in (READS, BUILDS, {"find": _fits_find}) if name in table]
    # The value of an option would take the option's place: leave out options first.
    for at in sorted(range(len(rest)), key=lambda at: rest[at][:1] != "-"):
        # Without `-m`, a module would be a file.
        if rest[at] != "-m" and any(fits((*rest[:at], *rest[at + 1 :])) for fits in known):
            shown = quote_text(show_argument(rest[at]))
            if may_become_option(rest[at]) or rest[at] != show_argument(rest[at]):
                return f"{shown} could become an option of {quote_text(name)}"
            return f"{quote_text(_get_start(words[: at + 1]))} with {shown} is not known to only read, build or test"
    return f"{quote_text(_get_start(words) if known else name)} is not known to only read, build or test"


def _get_start(words: Sequence[str]) -> str:
    """Return the program, with its subcommand or module if it has one."""
    if words[1:2] == ("-m",):
        return " ".join(map(show_argument, words[:3]))
    return " ".join(words[:2]) if words[0] in SUBCOMMANDS and words[1:2] and words[1][:1] != "-" else words[0]
