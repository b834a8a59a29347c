"""Which commands of a line run, in which blocks, and which variables are set for certain before each?

The parts of a line between its separators are walked in order, with the blocks that are open at each. What a block, a
pipeline or the second half of `a && b` sets may not have been set behind it, so it does not count there.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import quote_text
from tools.shell.arithmetic import DELIMITED, find_first_set
from tools.shell.conditions import join_conditions
from tools.shell.verdicts import NeedsApproval

BEGINNING = {"if": "if", "while": "loop", "until": "loop", "for": "loop", "{": "{", "case": "case"}
ENDING = {"fi": "if", "done": "loop", "}": "{", "esac": "case"}
CONTINUING = {"then": "if", "elif": "if", "else": "if", "do": "loop"}
ARMS = frozenset((";;", ";&", ";;&"))
PIPES = frozenset(("|", "|&"))
LEADING = frozenset((*PIPES, "&&", "||"))
SETTING = re.compile(r"([A-Za-z_]\w*)(\+?)=.*", re.DOTALL)
ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")
FUNCTION = re.compile(r"[A-Za-z_][\w-]*")
DECLARING = frozenset(("declare", "typeset", "local", "readonly", "export"))
MOVING = frozenset(("cd", "pushd", "popd"))


class StepRole(StrEnum):
    RUNS = "runs"
    HEAD = "head"
    """Words that a block begins with, and what stands in the place of a command: these run nothing themselves."""
    LOOP = "loop"
    """The name behind `for`, and what it stands for."""
    ELEMENTS = "elements"
    FUNCTION = "function"


class LineStep(Struct, frozen=True):
    command: ShellCommand
    words: Sequence[ShellWord]
    """Without the keywords in front."""
    kind: StepRole
    sure: frozenset[str]
    """The variables that the line has surely set by now, and `f()` for each function that it has surely defined."""
    name: str = ""
    """The array of these elements."""
    defines: str = ""
    """The function that begins here."""
    subshells: Sequence[int] = ()
    """The subshells that are open here."""
    wanders: bool = False
    """In a block that may run several times, or later, and that changes the folder."""


@dataclass(slots=True)
class _Block:
    kind: str
    entry: frozenset[str]
    sure: frozenset[str]
    name: str = ""
    branches: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    condition: frozenset[str] | None = None
    """What is sure behind the condition of an `if`."""
    has_else: bool = False
    in_pattern: bool = False
    stable: frozenset[str] = frozenset()
    """What is sure when the current list of `&&` and `||` ends."""
    begun: frozenset[str] = frozenset()
    """What was sure when that list, and its current pipeline, began."""
    piped_from: frozenset[str] = frozenset()
    in_pipe: bool = False
    is_first: bool = True
    loose: bool = False
    """Behind `||`."""
    first: int = 0
    """Its first step."""

    def __post_init__(self) -> None:
        self.restart(self.sure)

    def restart(self, sure: frozenset[str]) -> None:
        self.sure = self.stable = self.begun = self.piped_from = sure
        self.is_first, self.loose, self.in_pipe = True, False, False

    def add(self, names: Iterable[str]) -> None:
        if not self.loose:
            self.sure = self.sure.union(names)

    def read_sign(self, sign: str) -> None:
        if sign in PIPES:
            self.sure, self.in_pipe = self.piped_from, True
            return
        if self.in_pipe:
            self.sure, self.in_pipe = self.piped_from, False
        if self.is_first:
            self.stable = self.sure
        if sign == "&&":
            self.is_first = False
        elif sign == "||":
            self.is_first, self.loose, self.sure = False, True, self.stable
        else:
            self.sure = self.begun if sign == "&" else self.stable
            self.is_first, self.loose = True, False
            self.stable = self.begun = self.sure
        self.piped_from = self.sure


def list_steps(line: ShellLine, sure: frozenset[str] = frozenset()) -> Sequence[LineStep]:
    """Raises NeedsApproval if the blocks of the line are not those that bash would see."""
    walker = _Walker([_Block("", sure, sure)])
    for command in join_conditions(line.commands):
        walker.walk(command)
    return walker.finish()


@dataclass(slots=True)
class _Walker:
    blocks: list[_Block]
    steps: list[LineStep] = field(default_factory=list[LineStep])
    previous: Sequence[ShellWord] = ()
    """The words of the command before, without keywords."""
    waiting: str = ""
    """The function whose body comes next."""
    defined: str = ""
    """The function that the current command begins."""
    last_sign: str = ""
    subshells: tuple[int, ...] = ()
    bodies: list[int] = field(default_factory=list[int])
    """Where functions begin."""

    @property
    def block(self) -> _Block:
        return self.blocks[-1]

    def walk(self, command: ShellCommand) -> None:
        self.read_signs(command.signs)
        if not command.words and command.documents:
            self.add_step(command, (), StepRole.HEAD)
            return
        self.defined = ""
        sure, was_pattern = self.block.sure, self.block.in_pattern
        words = self.read_keywords(command)
        if was_pattern and self.block.in_pattern:
            _require_pattern(words, command.joined)
        kind = StepRole.RUNS
        if self.block.kind == "array":
            kind = StepRole.ELEMENTS
            _require_elements(words)
        elif words and _is_loop_head(command, words):
            kind = StepRole.LOOP
        elif self.block.in_pattern or not words:
            kind = StepRole.HEAD
        elif command.joined == "(" and _is_function(words):
            kind, self.waiting, self.defined = StepRole.FUNCTION, words[0].text, words[0].text
        if self.waiting and self.waiting != self.defined:
            raise NeedsApproval(f"the function {quote_text(self.waiting)} has a body that is not in braces")
        self.add_step(command, words, kind, sure if kind in (StepRole.HEAD, StepRole.LOOP) else self.block.sure)
        in_function = any(block.kind == "function" for block in self.blocks)
        if kind is StepRole.RUNS and words and (words[0].text != "local" or in_function):
            self.block.add(find_sure_names(words))
        self.previous, self.last_sign = words, ""

    def add_step(
        self, command: ShellCommand, words: Sequence[ShellWord], kind: StepRole, sure: frozenset[str] | None = None
    ) -> None:
        name = self.block.name if kind is StepRole.ELEMENTS else ""
        known = self.block.sure if sure is None else sure
        self.steps.append(LineStep(command, words, kind, known, name, self.defined, self.subshells))

    def finish(self) -> Sequence[LineStep]:
        if len(self.blocks) > 1 and self.blocks[-1].kind not in ("(", "array"):
            raise NeedsApproval("its blocks do not end where they seem to")
        for first in self.bodies:
            # A function runs where it is called.
            self.let_wander(first, len(self.steps), 0)
        return self.steps

    def let_wander(self, first: int, end: int, depth: int) -> None:
        if any(_moves(step) and len(step.subshells) <= depth for step in self.steps[first:]):
            self.steps[first:end] = [replace(step, wanders=True) for step in self.steps[first:end]]

    # The separators

    def read_signs(self, signs: Sequence[str]) -> None:
        for at, sign in enumerate(signs):
            if sign == "(":
                self.open_bracket(at == 0)
            elif sign == ")":
                self.close_bracket()
            elif sign in ("((", "))"):
                raise NeedsApproval("this arithmetic may do more than compute")
            elif sign in ARMS:
                self.end_arm()
            elif not self.waiting and (sign != "\n" or self.last_sign not in LEADING):
                self.block.read_sign(sign)
            if sign != "\n":
                self.last_sign = sign

    def open_bracket(self, is_behind_words: bool) -> None:
        last = self.previous[-1] if self.previous and is_behind_words else None
        if self.block.in_pattern or self.waiting:
            return
        if last is None or (len(self.previous) == 1 and last.source == "time"):
            self.open("(")
            self.subshells = (*self.subshells, len(self.steps))
        elif last.role is WordRole.ASSIGNMENT and ARRAY.fullmatch(last.source):
            self.open("array", last.source.rstrip("+="))
        else:
            raise NeedsApproval(f"a bracket behind {quote_text(last.source)} is not judged")

    def close_bracket(self) -> None:
        if self.waiting:
            return
        if self.block.kind == "case" and self.block.in_pattern:
            self.block.in_pattern = False
            self.block.restart(self.block.entry)
        elif self.block.kind == "array":
            self.close("array")
        else:
            self.close("(")
            self.subshells = self.subshells[:-1]

    def end_arm(self) -> None:
        if self.block.kind != "case" or self.block.in_pattern:
            raise NeedsApproval("a `;;` outside of `case` is not judged")
        self.block.in_pattern = True

    # The blocks

    def open(self, kind: str, name: str = "") -> None:
        sure = self.block.sure
        inner = sure | {f"{name}()"} if kind == "function" else sure
        self.blocks.append(_Block(kind, sure, inner, name, first=len(self.steps)))

    def close(self, kind: str) -> None:
        block = self.blocks.pop()
        if block.kind != kind or not self.blocks:
            raise NeedsApproval("its blocks do not end where they seem to")
        block.read_sign(";")
        result = block.entry
        if kind == "{":
            result = block.sure
        elif kind == "if":
            branches = [*block.branches, block.sure, *(() if block.has_else else (block.condition or block.entry,))]
            result = frozenset[str].intersection(*branches)
        elif kind == "function":
            result = block.entry | {f"{block.name}()"}
            self.bodies.append(block.first)
        if kind == "loop":
            self.let_wander(block.first, len(self.steps), len(self.subshells))
        self.block.add(result)

    def read_keywords(self, command: ShellCommand) -> Sequence[ShellWord]:
        """Open and close blocks, and return the words behind the keywords."""
        words = command.words
        for at, word in enumerate(words):
            if word.role is not WordRole.KEYWORD or (self.block.in_pattern and word.source != "esac"):
                return words[at:]
            if word.source == "function":
                return self.read_function(words[at + 1 :])
            self.read_keyword(word.source)
            if word.source in ("for", "case"):
                return self.read_head(word.source, words[at + 1 :])
        return ()

    def read_keyword(self, keyword: str) -> None:
        if self.waiting:
            if keyword != "{":
                raise NeedsApproval(f"the function {quote_text(self.waiting)} has a body that is not in braces")
            self.open("function", self.waiting)
            self.waiting = ""
        elif keyword in BEGINNING:
            self.open(BEGINNING[keyword])
        elif keyword == "}" and self.block.kind == "function":
            self.close("function")
        elif keyword in ENDING:
            self.close(ENDING[keyword])
        elif keyword in CONTINUING and self.block.kind == CONTINUING[keyword]:
            self.continue_block(keyword)
        elif keyword != "!":
            raise NeedsApproval(f"{quote_text(keyword)} in a line is not judged")

    def continue_block(self, keyword: str) -> None:
        block = self.block
        block.read_sign(";")
        if keyword == "then":
            block.condition = block.sure if block.condition is None else block.condition
        elif keyword in ("elif", "else"):
            block.branches.append(block.sure)
            block.sure = block.condition or block.entry
            block.has_else = keyword == "else"
        block.restart(block.sure)

    def read_head(self, keyword: str, words: Sequence[ShellWord]) -> Sequence[ShellWord]:
        """Read what stands behind `for` or `case`."""
        if keyword == "for":
            if words and (head := DELIMITED.fullmatch(words[0].source)):
                self.block.add(find_first_set(head[1].split(";")[0]))
            elif words:
                self.block.add((words[0].text,))
            return words
        if len(words) < 2 or words[1].role is not WordRole.KEYWORD or words[1].source != "in":
            raise NeedsApproval("this `case` is not judged")
        self.block.in_pattern = True
        if len(words) > 2 and words[2].role is WordRole.KEYWORD:
            raise NeedsApproval("this `case` is not judged")
        return words[2:]

    def read_function(self, words: Sequence[ShellWord]) -> Sequence[ShellWord]:
        if not words or not FUNCTION.fullmatch(words[0].source):
            raise NeedsApproval("a function with an odd name is not judged")
        self.waiting = self.defined = words[0].text
        if len(words) > 1:
            self.read_keyword(words[1].source if words[1].role is WordRole.KEYWORD else "")
        for at, word in enumerate(words[2:], 2):
            if word.role is not WordRole.KEYWORD:
                return words[at:]
            self.read_keyword(word.source)
            if word.source in ("for", "case", "function"):
                raise NeedsApproval("a function that begins so is not judged")
        return ()


def _require_pattern(words: Sequence[ShellWord], joined: str) -> None:
    """A pattern is one word, so that nothing that runs is taken for one."""
    if words and (len(words) > 1 or words[0].role is not WordRole.WORD or joined not in ("|", ")")):
        raise NeedsApproval(f"{quote_text(words[-1].source)} in a `case` is not judged")


def _require_elements(words: Sequence[ShellWord]) -> None:
    for word in words:
        if word.role is not WordRole.WORD or word.source.startswith("["):
            raise NeedsApproval(f"{quote_text(word.source)} in an array is not judged")


def _is_loop_head(command: ShellCommand, words: Sequence[ShellWord]) -> bool:
    """True if these words stood behind `for`."""
    at = len(command.words) - len(words)
    return at > 0 and command.words[at - 1].role is WordRole.KEYWORD and command.words[at - 1].source == "for"


def _is_function(words: Sequence[ShellWord]) -> bool:
    if len(words) != 1 or words[0].role is not WordRole.WORD or words[0].source == "time":
        return False
    return FUNCTION.fullmatch(words[0].source) is not None


def _moves(step: LineStep) -> bool:
    return any(word.text in MOVING for word in step.words)


def find_sure_names(words: Sequence[ShellWord]) -> Iterator[str]:
    """Find the variables that such a command has set once it has run."""
    if words and (arithmetic := DELIMITED.fullmatch(words[0].source)):
        yield from find_first_set(arithmetic[1])
        return
    settings = [word for word in words if word.role is not WordRole.TARGET]
    if settings and settings[0].text in DECLARING and settings[0].known:
        settings = settings[1:]
    elif any(word.role is not WordRole.ASSIGNMENT for word in settings):
        return
    for word in settings:
        # What `x+=1` makes of it depends on what it was before.
        if (match := SETTING.fullmatch(word.source)) and not match[2]:
            yield match[1]
