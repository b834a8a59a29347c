"""Does a part of this line need the user's approval? Judges every command in it, in order.

The line is judged as the words between its separators, not as a tree: whatever the grammar takes them for, each command
must be known, with its words, redirections, assignments and expansions. What is not known here needs approval.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from mcp_server.model.protected import describe_change_risk
from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import format_count, quote_text
from tools.shell.awk_programs import find_awk_danger
from tools.shell.compilers import COMPILERS, find_compiled_file
from tools.shell.conditions import join_conditions
from tools.shell.known_commands import BUILDS, READS, reads_code
from tools.shell.lines import read_line
from tools.shell.program_arguments import (
    is_certain,
    is_pattern,
    is_unknown,
    may_become_option,
    read_argument,
    show_argument,
)
from tools.shell.program_effects import describe_program, describe_script
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
PROGRAM = re.compile(r"[\w./+-]+|\[\[?|:")
PROJECT_PROGRAM = re.compile(r"(?:\./)?(?:\.?venv/bin|node_modules/\.bin|vendor/bin)/([\w.+-]+)")
PLAIN_NAME = re.compile(r"[A-Za-z][\w.+-]*")
WRAPPERS = {"./gradlew": "gradle", "./mvnw": "mvn"}
"""The project's own copy of a build tool."""
ACTIVATE = re.compile(r"(?:\./)?\.?venv/bin/activate")
SHELLS = frozenset(("bash", "sh", "dash"))
REDIRECTION = re.compile(r"(?:\d*|&)(<<<|<<-?|<>|<&|>&|>>|>\||<|>)")
STREAMS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
INSIDE = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))(?:[^/~]|/tmp/).*", re.DOTALL)
"""Below the current folder, or in the temporary folder that belongs to the command alone."""
SCOPED = frozenset(("npm", "pnpm", "yarn", "bun", "deno", "go", "composer"))
"""Names of their packages may begin with `@`. Others read more arguments from a file that is named so."""
HIDDEN_MATCH = re.compile(r"(?:^|/)\.[^/]*[*?\[]")


@dataclass
class LineJudge:
    """Judges one line."""

    folder: str = "."
    """Where it is by now, below the workspace."""
    left: str = ""
    """What may have left the project: a `cd`, or the shell's own folder."""
    is_outside: bool = False
    """It has surely left the workspace."""
    count: int = 0
    """Commands so far."""

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
        kinds = [self.judge_line(line) for line in command.nested]
        words = command.words
        if words and words[0].role is WordRole.KEYWORD:
            words = strip_keywords(words)
        targets = [word for word in words if word.role is WordRole.TARGET]
        kinds += [self._judge_redirection(target) for target in targets]
        kinds.append(self._judge_words([word for word in words if word.role is not WordRole.TARGET], targets))
        return get_widest(kinds)

    def _judge_words(self, words: Sequence[ShellWord], targets: Iterable[ShellWord]) -> CommandKind:
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
            raise NeedsApproval(describe_program((name.text,)))
        arguments = tuple(map(self.read_word, rest))
        if any("<<" in target.source[:3] for target in targets) and reads_code(arguments):
            return CommandKind.BUILDS
        return get_widest([*kinds, self._judge_program(arguments)])

    def read_word(self, word: ShellWord) -> str:
        return read_argument(word)

    def _judge_program(self, words: Sequence[str]) -> CommandKind:
        """Judge a program with its arguments, also one that another program starts."""
        name, rest = words[0], words[1:]
        if is_unknown(name) or not PROGRAM.fullmatch(name):
            raise NeedsApproval(f"{quote_text(show_argument(name))} could be any program")
        if project := PROJECT_PROGRAM.fullmatch(name):
            self._require_project_folder(name)
            # The project may have put anything there, so it never counts as reading.
            self._judge_program((project[1], *rest))
            return CommandKind.BUILDS
        if name in WRAPPERS:
            self._require_project_folder(name)
            return self._judge_program((WRAPPERS[name], *rest))
        if words[1:] in (("--version",), ("--help",)) and PLAIN_NAME.fullmatch(name) and name not in BUILTIN_NAMES:
            return CommandKind.READS
        if name in READS and READS[name](rest):
            return CommandKind.READS
        if name in BUILDS and BUILDS[name](rest):
            self._require_workspace(name, rest)
            return CommandKind.BUILDS
        if name in JUDGED:
            return JUDGED[name](self, rest)
        if name in STARTERS and (started := STARTERS[name](rest)) is not None:
            settings = judge_settings(rest) if name == "env" else []
            return get_widest([*settings, *map(self._judge_program, started)])
        raise NeedsApproval(describe_program(words, self.left))

    def _require_project_folder(self, part: str) -> None:
        if self.left:
            raise NeedsApproval(f"{quote_text(part)} may lie outside the project after {self.left}")

    def _require_workspace(self, program: str, words: Sequence[str]) -> None:
        """What is built or tested elsewhere is not the project."""
        for word in words:
            place = word.rpartition("=")[2]
            if word.startswith("@") and program not in SCOPED:
                raise NeedsApproval(f"{quote_text(word)} may be a file with more options")
            if is_certain(place) and leads_out(self.folder, place):
                raise NeedsApproval(f"{quote_text(word)} leads out of the workspace")
        if self.is_outside or self.folder.split("/")[0] == "..":
            raise NeedsApproval(f"{quote_text(program)} may run outside the workspace after {self.left}")

    def _judge_redirection(self, word: ShellWord) -> CommandKind:
        sign = REDIRECTION.match(word.source)
        if sign is None:
            raise NeedsApproval(f"the redirection {quote_text(word.source)} is not a plain one")
        if sign[1].startswith("<<"):
            return CommandKind.READS
        if sign[1] in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text):
            return CommandKind.READS
        if sign[1] == "<":
            # bash connects to the address in `/dev/tcp/HOST/PORT`.
            if word.text.startswith(("$", "/dev/")) and word.text not in ("/dev/null", "/dev/stdin"):
                raise NeedsApproval(f"`<` reads {_describe_place(word, '<')}")
            return CommandKind.READS
        if word.known and word.text in STREAMS:
            return CommandKind.READS
        if not word.known or not re.fullmatch(r"[^*?\[{~]+", word.source):
            raise NeedsApproval(f"{quote_text(sign[0])} writes to {_describe_place(word, sign[0])}")
        return self._judge_writing(word.text)

    def _judge_writing(self, *paths: str) -> CommandKind:
        for path in paths:
            if path == "/dev/null":
                continue
            if not (is_certain(path) or is_pattern(path)) or path.startswith("-") or HIDDEN_MATCH.search(path):
                raise NeedsApproval(f"menugate cannot tell which file {quote_text(show_argument(path))} is")
            if not INSIDE.fullmatch(path):
                raise NeedsApproval(f"{quote_text(path)} may lie outside the workspace")
            if not path.startswith("/"):
                self._require_project_folder(path)
            if risk := describe_change_risk(path, posixpath.normpath(posixpath.join(self.folder, path))):
                raise NeedsApproval(risk.rstrip("."))
        return CommandKind.BUILDS

    def judge_cd(self, words: Sequence[str]) -> CommandKind:
        is_below = len(words) == 1 and is_certain(words[0]) and not words[0].startswith(("/", "-"))
        if not is_below or ".." in words[0].split("/"):
            self.left = quote_text(" ".join(("cd", *map(show_argument, words))))
            self.is_outside = len(words) == 1 and is_certain(words[0]) and leads_out(self.folder, words[0])
        else:
            self.folder = posixpath.normpath(posixpath.join(self.folder, words[0]))
        return CommandKind.READS

    def judge_awk(self, words: Sequence[str]) -> CommandKind:
        if danger := find_awk_danger(words):
            raise NeedsApproval(f"`awk` may do more than print: {quote_text(show_argument(danger))}")
        return CommandKind.READS

    def judge_sed(self, words: Sequence[str]) -> CommandKind:
        call = read_sed_call(words)
        if isinstance(call, str):
            raise NeedsApproval(f"`sed` may do more than edit text: {quote_text(show_argument(call))}")
        return self._judge_writing(*call.files) if call.in_place else CommandKind.READS

    def judge_tee(self, words: Sequence[str]) -> CommandKind:
        return self._judge_writing(*(word for word in words if word not in ("-a", "--append")))

    def judge_source(self, words: Sequence[str]) -> CommandKind:
        if len(words) != 1 or not ACTIVATE.fullmatch(words[0]):
            raise NeedsApproval(describe_script(show_argument(words[0])) if words else "`source` names no file")
        self._require_project_folder(words[0])
        return CommandKind.BUILDS

    def judge_shell(self, words: Sequence[str]) -> CommandKind:
        """Judge the line in `bash -c LINE`; what follows it are its arguments. `bash -n FILE` runs nothing."""
        if words[:1] == ("-n",) and len(words) > 1 and not any(map(_may_be_option, words[1:])):
            return CommandKind.READS
        if len(words) < 2 or not re.fullmatch("-[eux]*c", words[0]) or not is_certain(words[1]):
            raise NeedsApproval(_describe_shell(words))
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
        return self._judge_writing(written)

    def judge_npx(self, words: Sequence[str]) -> CommandKind:
        """Judge `npx tsc`; with others, npx installs what they name. Where nobody types, it takes yes anyway."""
        rest = words[1:] if words[:1] in (("--no-install",), ("--no",), ("--yes",), ("-y",)) else words
        if not rest or rest[0] not in BY_NPX:
            raise NeedsApproval(describe_program(("npx", *words)))
        return self._judge_program(rest)

    def judge_bundle(self, words: Sequence[str]) -> CommandKind:
        """Judge what `bundle exec` starts."""
        if words[:1] == ("exec",) and len(words) > 1:
            self._judge_program(words[1:])
            return CommandKind.BUILDS
        raise NeedsApproval(describe_program(("bundle", *words)))

    def judge_package_runner(self, words: Sequence[str], runner: str) -> CommandKind:
        """Judge what `uv run` or `poetry run` starts."""
        if words[:1] != ("run",) or len(words) < 2:
            raise NeedsApproval(describe_program((runner, *words)))
        self._judge_program(words[1:])
        return CommandKind.BUILDS


JUDGED = {
    **dict.fromkeys(("cd", "pushd", "popd"), LineJudge.judge_cd),
    **dict.fromkeys(("awk", "gawk", "mawk"), LineJudge.judge_awk),
    "sed": LineJudge.judge_sed,
    "tee": LineJudge.judge_tee,
    **dict.fromkeys((".", "source"), LineJudge.judge_source),
    **dict.fromkeys(SHELLS, LineJudge.judge_shell),
    "npx": LineJudge.judge_npx,
    "bundle": LineJudge.judge_bundle,
    **{
        runner: partial(LineJudge.judge_package_runner, runner=runner)
        for runner in ("uv", "poetry", "hatch", "pdm", "pipenv", "rye")
    },
    **dict.fromkeys(COMPILERS, LineJudge.judge_compiler),
}


def leads_out(folder: str, path: str) -> bool:
    """True if a path with `..` climbs above the workspace, seen from this folder of it."""
    is_relative = ".." in path.split("/") and not path.startswith(("/", "-"))
    return is_relative and posixpath.normpath(posixpath.join(folder, path)).split("/")[0] == ".."


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


def _describe_shell(words: Sequence[str]) -> str:
    """Say why `bash` with these words asks."""
    if words and is_certain(words[0]) and words[0][:1] not in "-+":
        return describe_script(words[0])
    if words and re.fullmatch("-[a-z]*c", words[0]):
        return "it starts a shell with commands that are only known when the line runs"
    if words:
        return f"it starts a shell with {quote_text(show_argument(words[0]))}, which is not known to be harmless"
    return "it starts a shell that runs what it reads from its input"


def _describe_place(word: ShellWord, sign: str) -> str:
    if word.known and word.text.startswith("/dev/"):
        return f"{quote_text(word.text)}, which is not a file"
    return "a file whose name is only known when the line runs"
