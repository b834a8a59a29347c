"""Does a part of this line need the user's approval? Judges every command in it, in order.

The line is judged as the words between its separators, not as a tree: whatever the grammar takes them for, each command
must be known, with its words, redirections, assignments and expansions. What is not known here needs approval.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import format_count, quote_text
from tools.shell.arithmetic import read_delimited
from tools.shell.expansions import does_hidden_arithmetic, require_plain_expansion
from tools.shell.judged_programs import JUDGED
from tools.shell.known_commands import BUILDS, READS
from tools.shell.line_scope import NO_SCOPE, SCOPED_BUILTINS, LineScope
from tools.shell.line_steps import MOVING, LineStep, StepRole, list_steps
from tools.shell.line_values import read_values
from tools.shell.lines import read_line
from tools.shell.place_judge import PlaceJudge
from tools.shell.plain_sources import is_plain_input, is_plain_source, list_inputs
from tools.shell.program_arguments import (
    is_unknown,
    read_argument,
    show_argument,
)
from tools.shell.program_effects import describe_program
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.starters import STARTERS, judge_settings
from tools.shell.variables import judge_assignment, judge_export, require_own_variable
from tools.shell.verdicts import CommandKind, NeedsApproval

MAX_COMMANDS = 25
BLOCKS = frozenset(("(", "((", "))", ";;", ";&", ";;&"))
"""What joins a command to one that may not run as it stands there."""
OPENING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{"))
CLOSING = frozenset(("fi", "done", "}"))
PROGRAM = re.compile(r"[\w./+-]+|\[\[?|:")
PROJECT_PROGRAM = re.compile(r"(?:\./)?(?:\.?venv/bin|node_modules/\.bin|vendor/bin)/([\w.+-]+)")
PLAIN_NAME = re.compile(r"[A-Za-z][\w.+-]*")
SYSTEM_PROGRAM = re.compile(r"/(?:usr/)?bin/([A-Za-z][\w.+-]*)")
ALSO_PROGRAMS = frozenset(("echo", "printf", "true", "false", "pwd", "test"))
"""Builtins that do the same as the programs of their name."""
VERSIONED = re.compile(r"(python3)\.\d+")
WRAPPERS = {"./gradlew": "gradle", "./mvnw": "mvn"}
"""The project's own copy of a build tool."""


@dataclass
class LineJudge(PlaceJudge):
    """Judges one line."""

    count: int = 0
    """Commands so far."""
    before: ShellCommand | None = None
    """The command in front of the current one."""
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
        before, self.before = self.before, None
        try:
            for expansion in command.expansions:
                require_plain_expansion(expansion, scope.is_number)
            kinds = [self._judge_nested(line) for line in command.nested]
            self._check_block(step)
            words = step.words if step.kind is StepRole.RUNS else ()
            self.is_fed = _is_fed(words, before)
            kinds += map(self._judge_all_words, scope.spell_all(words))
            self.note_written(words, is_plain_source(command))
            return get_widest(kinds)
        finally:
            self.scope, self.before, self.is_fed = outer, command, False

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
        kinds = [self.judge_redirection(target) for target in targets]
        rest = [word for word in words if word.role is not WordRole.TARGET]
        return get_widest([*kinds, self._judge_words(rest)])

    def _judge_words(self, words: Sequence[ShellWord]) -> CommandKind:
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
            raise NeedsApproval(f"{quote_text(name.source)} is not written plainly, so menugate does not judge it")
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
        if plain := self._find_plain_name(name):
            return self.judge_program((plain, *rest))
        if name == "time" and not rest:
            return CommandKind.READS  # what follows it in brackets is a command of its own
        if words[1:] in (("--version",), ("--help",)) and PLAIN_NAME.fullmatch(name) and name not in BUILTIN_NAMES:
            return CommandKind.READS
        if name in READS and READS[name](rest):
            return CommandKind.READS
        if name in BUILDS and BUILDS[name](rest):
            self.require_workspace(name, rest)
            return CommandKind.BUILDS
        if name in MOVING:
            return self.judge_cd(rest)
        if name in JUDGED:
            return JUDGED[name](self, rest)
        if name in STARTERS and (started := STARTERS[name](rest)) is not None:
            if name not in ("command", "time") and any(one[0] in MOVING for one in started):
                raise NeedsApproval(f"{quote_text(name)} starts programs, and `cd` is none")
            settings = judge_settings(rest) if name == "env" else []
            return get_widest([*settings, *map(self.judge_program, started)])
        raise NeedsApproval(describe_program(words, self.left))

    def _find_plain_name(self, name: str) -> str:
        """Find what a program of the system, or one with its version in its name, is called."""
        if versioned := VERSIONED.fullmatch(name):
            return versioned[1]
        found = SYSTEM_PROGRAM.fullmatch(name)
        root = self.around.root if self.around else ""
        if found is None or (root and name.startswith(f"{root.rstrip('/')}/")):
            return ""
        return found[1] if found[1] not in BUILTIN_NAMES or found[1] in ALSO_PROGRAMS else ""

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
