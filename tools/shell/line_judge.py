"""Does a part of this line need the user's approval? Judges every command in it, in order.

The line is judged as the words between its separators, not as a tree: whatever the grammar takes them for, each command
must be known, with its words, redirections, assignments and expansions. What is not known here needs approval.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from mcp_server.model.protected import describe_change_risk
from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import format_count, quote_text
from tools.shell.arithmetic import read_delimited
from tools.shell.expansions import does_hidden_arithmetic, require_plain_expansion
from tools.shell.judged_programs import JUDGED
from tools.shell.known_commands import BUILDS, READS, reads_code
from tools.shell.line_scope import NO_SCOPE, REDIRECTION, SCOPED_BUILTINS, LineScope
from tools.shell.line_steps import MOVING, LineStep, StepRole, list_steps
from tools.shell.line_values import read_values
from tools.shell.lines import read_line
from tools.shell.program_arguments import (
    is_certain,
    is_pattern,
    is_unknown,
    read_argument,
    show_argument,
)
from tools.shell.program_effects import describe_program
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.starters import STARTERS, judge_settings
from tools.shell.variables import judge_assignment, judge_export, require_own_variable
from tools.shell.verdicts import CommandKind, NeedsApproval
from tools.shell.word_values import HERE

MAX_COMMANDS = 25
BLOCKS = frozenset(("(", "((", "))", ";;", ";&", ";;&"))
"""What joins a command to one that may not run as it stands there."""
OPENING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{"))
CLOSING = frozenset(("fi", "done", "}"))
PROGRAM = re.compile(r"[\w./+-]+|\[\[?|:")
PROJECT_PROGRAM = re.compile(r"(?:\./)?(?:\.?venv/bin|node_modules/\.bin|vendor/bin)/([\w.+-]+)")
PLAIN_NAME = re.compile(r"[A-Za-z][\w.+-]*")
WRAPPERS = {"./gradlew": "gradle", "./mvnw": "mvn"}
"""The project's own copy of a build tool."""
FROM_COMMAND = re.compile(r"\d*<\s*<\(")
"""A process substitution becomes the name of a pipe; the command in it is judged by itself."""
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
    start: str = "."
    """Where it began, below the workspace."""
    left_from: str = ""
    """What had left the project before it began."""
    is_outside: bool = False
    """It has surely left the workspace."""
    count: int = 0
    """Commands so far."""
    scope: LineScope | None = None
    """What the line says about its variables."""
    places: list[tuple[int, str, str, bool]] = field(default_factory=list[tuple[int, str, str, bool]])
    """Where the line was when each open subshell began."""

    def judge_line(self, line: ShellLine) -> CommandKind:
        """Judge a line, or one within it. Raises NeedsApproval."""
        return get_widest([self.judge_step(step) for step in self.begin_line(line)])

    def begin_line(self, line: ShellLine) -> Sequence[LineStep]:
        if line.plain and all(word.role is WordRole.WORD for word in line.commands[0].words):
            self.scope = self.scope or NO_SCOPE
            return [LineStep(line.commands[0], line.commands[0].words, StepRole.RUNS, self.scope.sure)]
        if self.scope is None:
            self.scope = LineScope(read_values(line))
        return list_steps(line, self.scope.sure)

    def judge_step(self, step: LineStep) -> CommandKind:
        self.count += 1
        if self.count > MAX_COMMANDS:
            raise NeedsApproval(f"it runs more than {format_count(MAX_COMMANDS, 'command')}")
        self._follow(step)
        command, outer = step.command, self.scope or NO_SCOPE
        if does_hidden_arithmetic(command):
            raise NeedsApproval("arithmetic in a line is not judged")
        self.scope = scope = LineScope(outer.values, step.sure)
        try:
            for expansion in command.expansions:
                require_plain_expansion(expansion, scope.is_number)
            kinds = [self._judge_nested(line) for line in command.nested]
            self._check_block(step)
            words = step.words if step.kind is StepRole.RUNS else ()
            return get_widest([*kinds, *map(self._judge_all_words, scope.spell_all(words))])
        finally:
            self.scope = outer

    def _check_block(self, step: LineStep) -> None:
        """Check what a loop, a function or an array is called."""
        if step.kind is StepRole.LOOP:
            _check_loop(step.words)
        if step.command.joined == "(" and step.words and step.words[-1].role is WordRole.ASSIGNMENT:
            require_own_variable(step.words[-1].source.rstrip("+="))
        name = step.defines
        if name in BUILTIN_NAMES or any(name in table for table in (READS, BUILDS, JUDGED, STARTERS)):
            raise NeedsApproval(f"a function called {quote_text(name)} would stand in for the program")

    def judge_command(self, command: ShellCommand) -> CommandKind:
        """Judge one command, without what the rest of its line says about it. Raises NeedsApproval."""
        if command.joined in BLOCKS:
            raise NeedsApproval("a part of a function, an array or a `case` is not judged by itself")
        self.scope = NO_SCOPE
        words = strip_keywords(command.words) if command.words[:1] else ()
        return self.judge_step(LineStep(command, words, StepRole.RUNS, frozenset()))

    def __post_init__(self) -> None:
        self.start, self.left_from = self.folder, self.left

    def _follow(self, step: LineStep) -> None:
        """Return to where the line was before the subshells that have ended; note those that begin."""
        while self.places and self.places[-1][0] not in step.subshells:
            _, self.folder, self.left, self.is_outside = self.places.pop()
        for one in step.subshells[len(self.places) :]:
            self.places.append((one, self.folder, self.left, self.is_outside))
        if step.wanders and not self.left:
            self.left = "a `cd` that runs again or later"

    def _judge_nested(self, line: ShellLine) -> CommandKind:
        """Judge a line that runs in a shell of its own, and so leaves this one where it was."""
        before, self.places = (self.folder, self.left, self.is_outside, self.places), []
        try:
            return self.judge_line(line)
        finally:
            self.folder, self.left, self.is_outside, self.places = before

    def _judge_all_words(self, words: Sequence[ShellWord]) -> CommandKind:
        targets = [word for word in words if word.role is WordRole.TARGET]
        kinds = [self._judge_redirection(target) for target in targets]
        rest = [word for word in words if word.role is not WordRole.TARGET]
        return get_widest([*kinds, self._judge_words(rest, targets)])

    def _judge_words(self, words: Sequence[ShellWord], targets: Iterable[ShellWord]) -> CommandKind:
        settings = list(takewhile(lambda word: word.role is WordRole.ASSIGNMENT, words))
        rest = words[len(settings) :]
        scope = self.scope or NO_SCOPE
        if not rest:
            return get_widest([scope.judge_setting(word) for word in settings])
        name = rest[0]
        if len(rest) == 1 and name.source.startswith("((") and read_delimited(name.source):
            return CommandKind.READS
        if not name.known:
            raise NeedsApproval(f"{quote_text(name.source)} could be any program")
        if not PROGRAM.fullmatch(name.source):
            raise NeedsApproval(f"{quote_text(name.source)} is not the plain name of a program")
        if name.text == "export":
            return get_widest(
                [judge_assignment(word, exported=True) for word in settings] + [*map(judge_export, rest[1:])]
            )
        if name.text in SCOPED_BUILTINS or scope.is_defined(name.text):
            inner = [SCOPED_BUILTINS[name.text](scope, rest)] if name.text in SCOPED_BUILTINS else []
            return get_widest([*(judge_assignment(word, exported=True) for word in settings), *inner])
        if name.text == "read":  # only `read` itself sees such a separator
            settings = [word for word in settings if not word.source.startswith("IFS=")]
        kinds = [judge_assignment(word, exported=True) for word in settings]
        if not all(word.role is WordRole.WORD for word in rest):
            raise NeedsApproval(describe_program((name.text,)))
        arguments = tuple(map(self.read_word, rest))
        if any("<<" in target.source[:3] for target in targets) and reads_code(arguments):
            return CommandKind.BUILDS
        return get_widest([*kinds, self.judge_program(arguments)])

    def read_word(self, word: ShellWord) -> str:
        return read_argument(word)

    def judge_program(self, words: Sequence[str]) -> CommandKind:
        """Judge a program with its arguments, also one that another program starts."""
        name, rest = words[0], words[1:]
        if is_unknown(name) or not PROGRAM.fullmatch(name):
            raise NeedsApproval(f"{quote_text(show_argument(name))} could be any program")
        if project := PROJECT_PROGRAM.fullmatch(name):
            self.require_project_folder(name)
            # The project may have put anything there, so it never counts as reading.
            self.judge_program((project[1], *rest))
            return CommandKind.BUILDS
        if name in WRAPPERS:
            self.require_project_folder(name)
            return self.judge_program((WRAPPERS[name], *rest))
        if name == "time" and not rest:
            return CommandKind.READS  # what follows it in brackets is a command of its own
        if words[1:] in (("--version",), ("--help",)) and PLAIN_NAME.fullmatch(name) and name not in BUILTIN_NAMES:
            return CommandKind.READS
        if name in READS and READS[name](rest):
            return CommandKind.READS
        if name in BUILDS and BUILDS[name](rest):
            self._require_workspace(name, rest)
            return CommandKind.BUILDS
        if name in MOVING:
            return self.judge_cd(rest)
        if name in JUDGED:
            return JUDGED[name](self, rest)
        if name in STARTERS and (started := STARTERS[name](rest)) is not None:
            settings = judge_settings(rest) if name == "env" else []
            return get_widest([*settings, *map(self.judge_program, started)])
        raise NeedsApproval(describe_program(words, self.left))

    def require_project_folder(self, part: str) -> None:
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
            name = re.fullmatch(r"\"?\$\{?(\w+)\}?\"?", word.text)
            if name and (self.scope or NO_SCOPE).find(name[1]).is_name:
                return CommandKind.READS
            if word.text == "$()" and FROM_COMMAND.match(word.source):
                return CommandKind.READS
            if word.text.startswith(("$", "/dev/")) and word.text not in ("/dev/null", "/dev/stdin"):
                raise NeedsApproval(f"`<` reads {_describe_place(word, '<')}")
            return CommandKind.READS
        if word.known and word.text in STREAMS:
            return CommandKind.READS
        if not word.known or not re.fullmatch(r"[^*?\[{~]+", word.source):
            raise NeedsApproval(f"{quote_text(sign[0])} writes to {_describe_place(word, sign[0])}")
        return self.judge_writing(word.text)

    def judge_writing(self, *paths: str) -> CommandKind:
        for path in paths:
            if path == "/dev/null":
                continue
            if path.startswith(HERE) and INSIDE.fullmatch(path):
                inside = path.removeprefix(HERE).lstrip("/") or "."
                if risk := describe_change_risk(inside, posixpath.normpath(posixpath.join(self.start, inside))):
                    raise NeedsApproval(risk.rstrip("."))
                continue
            if not (is_certain(path) or is_pattern(path)) or path.startswith("-") or HIDDEN_MATCH.search(path):
                raise NeedsApproval(f"menugate cannot tell which file {quote_text(show_argument(path))} is")
            if not INSIDE.fullmatch(path):
                raise NeedsApproval(f"{quote_text(path)} may lie outside the workspace")
            if not path.startswith("/"):
                self.require_project_folder(path)
            if risk := describe_change_risk(path, posixpath.normpath(posixpath.join(self.folder, path))):
                raise NeedsApproval(risk.rstrip("."))
        return CommandKind.BUILDS

    def judge_cd(self, words: Sequence[str]) -> CommandKind:
        if len(words) == 1 and words[0].startswith(HERE) and ".." not in words[0].split("/"):
            inside = words[0].removeprefix(HERE).lstrip("/")
            self.folder = posixpath.normpath(posixpath.join(self.start, inside or "."))
            self.left, self.is_outside = self.left_from, False
            return CommandKind.READS
        is_below = len(words) == 1 and is_certain(words[0]) and not words[0].startswith(("/", "-"))
        if not is_below or ".." in words[0].split("/"):
            self.left = quote_text(" ".join(("cd", *map(show_argument, words))))
            self.is_outside = len(words) == 1 and is_certain(words[0]) and leads_out(self.folder, words[0])
        else:
            self.folder = posixpath.normpath(posixpath.join(self.folder, words[0]))
        return CommandKind.READS

    def judge_inner_text(self, text: str, has_scope: bool = False) -> CommandKind:
        """Judge a line that is given as text. Only with `has_scope` does it see the variables of this one."""
        line = read_line(text)
        if line is None:
            raise NeedsApproval(f"bash may read {quote_text(text)} differently than it looks")
        outer = self.scope, self.start, self.left_from
        if not has_scope:
            self.scope, self.start, self.left_from = None, self.folder, self.left
        try:
            return self._judge_nested(line)
        finally:
            self.scope, self.start, self.left_from = outer


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
    _check_loop(words)
    return ()


def _check_loop(words: Sequence[ShellWord]) -> None:
    """Check the words behind `for`: a name and the values it takes, which run nothing."""
    if words and words[0].source.startswith("(("):
        return
    require_own_variable(words[0].text if words else "")
    for word in words[2:]:
        if word.role is WordRole.WORD and not word.known:
            continue
        read_argument(word)


def _describe_place(word: ShellWord, sign: str) -> str:
    if word.known and word.text.startswith("/dev/"):
        return f"{quote_text(word.text)}, which is not a file"
    return "a file whose name is only known when the line runs"
