"""What does each part of this line do, for the person who is asked about it?

The judge of lines stops at the first part that needs approval, and that decides. Here it goes on behind such a part.
What it says of a later part is true only if the earlier ones leave the shell as it is, so behind one that might not,
every part asks.
"""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from msgspec.structs import replace

from mcp_server.model.shell import ShellCommand, ShellLine, WordRole
from mcp_server.model.text import quote_text
from mcp_server.model.tools import Arguments, CallPart, Loss
from tools.shell.classify import find_start, read_whole_line
from tools.shell.expansions import does_hidden_arithmetic, require_plain_expansion
from tools.shell.line_judge import BLOCKS, MAX_COMMANDS, OPENING, PROGRAM, LineJudge
from tools.shell.line_steps import LineStep, StepRole
from tools.shell.losses import DELETING, LossPlace, find_losses
from tools.shell.verdicts import CommandKind, NeedsApproval

CHANGING = """
. : [ [[ alias bg bind break builtin cd command compgen complete compopt continue coproc declare dirs disown enable eval
exec exit export fc fg function getopts hash history let local logout mapfile popd printf pushd read readarray
readonly return select set shift shopt source suspend test time times trap type typeset ulimit umask unalias
unset until wait
"""
SHELL_CHANGING = frozenset(CHANGING.split())
"""Builtins of bash, and words before a command, that may change what later commands do."""
SOURCING = frozenset((".", "source"))
OTHER_BUILTINS = frozenset(("echo", "false", "kill", "pwd", "true"))

REPEATING = frozenset(("for", "while", "until", "select", "do", "function"))

DOES: Mapping[CommandKind, Literal["reads", "builds", "asks"]] = {
    CommandKind.READS: "reads",
    CommandKind.BUILDS: "builds",
    CommandKind.ASKED: "asks",
}


def list_line_parts(args: Arguments) -> Sequence[CallPart]:
    """List the commands of the line. In a shell that stays open, names may mean anything, so nothing is said there."""
    if (args.get("bash_id") or args.get("shell_id")) and not args.get("run_in_background"):
        return ()
    return find_line_parts(args["command"], args.get("exec_dir") or ".")


@lru_cache(maxsize=4)
def find_line_parts(text: str, folder: str) -> Sequence[CallPart]:
    """Return nothing if the line is not understood as a whole."""
    try:
        line = read_whole_line(text)
    except NeedsApproval:
        return ()
    source = text.encode("utf-8", "replace")
    start, left = find_start(folder)
    judge = _PartJudge(start, left, line=source, text=source, folders={start: None})
    try:
        judge.judge_line(line)
    except NeedsApproval:
        return ()
    return tuple(judge.doubt_part(part, judge.repeats) for part in judge.parts)


@dataclass
class _PartJudge(LineJudge):
    """Collects what it finds, instead of stopping at the first part that needs approval."""

    line: bytes = b""
    text: bytes = b""
    """What is being read: the line, or one within it."""
    offset: int | None = 0
    """Where that begins in the line."""
    parts: list[CallPart] = field(default_factory=list[CallPart])
    changing: str = ""
    """An earlier part that may have changed the shell."""
    repeats: bool = False
    """A part may run before an earlier one, as in a loop or a function."""
    branches: bool = False
    """It is more than a list of commands."""
    strayed: bool = False
    """A `cd` may have failed, so that nobody knows in which folder the next part runs."""
    folders: dict[str, None] = field(default_factory=dict[str, None])
    """Where parts may have run so far."""
    altered: bool = False
    """An earlier part may have changed what is in them."""
    sourced: str = ""
    """An earlier part that has run a file of the project in this shell."""
    programs: tuple[str, ...] = ()
    """What the current command starts, and those around it."""
    opened: bool = False
    """The current command runs a line of its own, whose parts stand for it."""

    def judge_line(self, line: ShellLine) -> CommandKind:
        self.branches = self.branches or not line.listed
        steps = self.begin_line(line)
        self.repeats = self.repeats or any(map(_may_run_again, steps))
        before: tuple[ShellCommand, int] | None = None
        folder = self.folder
        for step in steps:
            command = step.command
            if self.count > MAX_COMMANDS:
                break
            at = self._collect(step)
            if at is not None:
                before = command, at
            elif before is not None and not command.words and _takes_document(before[0]):
                self._add_document(command, *before)
        # A line within the line leaves the shell around it where it was.
        self.strayed = self.strayed or self.folder != folder
        # The parts speak for themselves; what contains them is judged by what it does besides.
        return CommandKind.READS

    def judge_inner_text(self, text: str, has_scope: bool = False) -> CommandKind:
        outer, offset, inner = self.text, self.offset, text.encode("utf-8", "replace")
        is_found = offset is not None and outer.count(inner) == 1
        self.offset = offset + outer.index(inner) if offset is not None and is_found else None
        self.text, self.opened = inner, True
        try:
            return super().judge_inner_text(text, has_scope)
        finally:
            self.text, self.offset = outer, offset

    def judge_program(self, words: Sequence[str]) -> CommandKind:
        if "/" not in words[0] and words[0] not in SHELL_CHANGING | OTHER_BUILTINS:
            self.programs = (*self.programs, words[0])
        return super().judge_program(words)

    def _collect(self, step: LineStep) -> int | None:
        """Judge a command and add it, after what runs within it. Return its place among the parts, if it has one."""
        around, self.opened = self.opened, False
        outer, command = self.programs, step.command
        try:
            kind, why = self.judge_step(step), ""
        except NeedsApproval as reason:
            kind, why = CommandKind.ASKED, str(reason)
        self.folders[self.folder] = None
        stands_for_itself, self.opened = not self.opened, around
        programs, self.programs = tuple(dict.fromkeys(self.programs)), outer
        if kind is CommandKind.READS and not (stands_for_itself and _runs_something(step)):
            return None
        part = replace(self._build_part(command, kind, why), programs=programs, after=self.sourced)
        self.strayed = self.strayed or (self.folder != self.start and command.joined not in ("", "&&"))
        if why and not self.changing and _may_change_shell(step):
            self.changing = part.text
        if not self.sourced and any(word.text in SOURCING for word in command.words):
            self.sourced = part.text
        self.altered = self.altered or (part.does != "reads" and DELETING.isdisjoint(programs))
        self.parts.append(part)
        return len(self.parts) - 1

    def _build_part(self, command: ShellCommand, kind: CommandKind, why: str) -> CallPart:
        text, span = " ".join(word.source for word in command.words), None
        if command.span is not None:
            start, end = command.span
            start += _measure_keywords(command, self.text[start:end])
            text, span = self.text[start:end].decode(), self._find_span(start, end)
        losses = tuple(find_losses(command.words, self._find_place()))
        return self.doubt_part(CallPart(text, DOES[kind], why, span, losses), True)

    def _find_place(self) -> LossPlace:
        if self.left:
            return LossPlace((), self.altered)
        return LossPlace(
            (self.folder, *(one for one in self.folders if one != self.folder and self.strayed)), self.altered
        )

    def doubt_part(self, part: CallPart, is_behind: bool) -> CallPart:
        """What a part does is uncertain if it may run behind one that may have changed the shell."""
        changing = self.changing if is_behind else ""
        if changing:
            part = replace(part, losses=())
        elif self.branches and len(self.folders) > 1:
            part = replace(part, losses=tuple(dict.fromkeys(_doubt_loss(loss) for loss in part.losses)))
        if part.does == "asks" or not changing:
            return part
        return replace(part, does="asks", why=f"{quote_text(changing)} may change what it does")

    def _find_span(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the bytes of the current text as characters of the line."""
        if self.offset is None:
            return None
        line = self.line
        first, last = self.offset + start, self.offset + end
        return len(line[:first].decode()), len(line[:last].decode())

    def _add_document(self, document: ShellCommand, command: ShellCommand, at: int) -> None:
        """Show what a command reads from the line as a part of the command."""
        if command.span is None or document.span is None:
            return
        text = self.text[command.span[1] : document.span[1]].decode()
        part = self.parts[at]
        span = part.span and (part.span[0], part.span[1] + len(text))
        self.parts[at] = replace(part, text=part.text + text, span=span)


def _may_run_again(step: LineStep) -> bool:
    """True of the beginning of a loop or a function, and of what runs when something happens."""
    is_trap = any(word.text == "trap" for word in step.words)
    return (
        step.kind is StepRole.FUNCTION
        or is_trap
        or any(word.role is WordRole.KEYWORD and word.source in REPEATING for word in step.command.words)
    )


def _doubt_loss(loss: Loss) -> Loss:
    """Nobody knows where it happens."""
    return loss._replace(known=False, doubt="folder", path=posixpath.basename(loss.path.rstrip("/")))


def _takes_document(command: ShellCommand) -> bool:
    return any(word.role is WordRole.TARGET and "<<" in word.source[:3] for word in command.words)


def _runs_something(step: LineStep) -> bool:
    """False for `done`, for the head of a loop, and for the body of a here-document."""
    return step.kind is StepRole.RUNS and any(word.role is not WordRole.KEYWORD for word in step.command.words)


def _measure_keywords(command: ShellCommand, text: bytes) -> int:
    """Measure the `do` or `then` in front of a command."""
    length = 0
    for word in command.words:
        if word.role is not WordRole.KEYWORD or word.source not in OPENING:
            break
        rest = text[length:].removeprefix(word.source.encode())
        length = len(text) - len(rest.lstrip())
    return length if length < len(text) else 0


def _may_change_shell(step: LineStep) -> bool:
    """True unless it only starts a program, which cannot change the shell that starts it."""
    command = step.command
    if step.kind is not StepRole.RUNS or command.joined in BLOCKS or does_hidden_arithmetic(command):
        return True
    try:
        for expansion in command.expansions:
            require_plain_expansion(expansion)
    except NeedsApproval:
        return True
    names = [word for word in step.words if word.role not in (WordRole.ASSIGNMENT, WordRole.TARGET)][:1]
    return not any(word.known and PROGRAM.fullmatch(word.source) and word.text not in SHELL_CHANGING for word in names)
