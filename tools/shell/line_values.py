"""What do the variables of a line contain, as far as the line itself gives them their values?

Every place in the line that sets a variable counts, wherever it stands, because loops and functions run again. One
place that could set it to anything makes it unknown. Before a use, the line must surely have set it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile

from msgspec import Struct

from mcp_server.model.shell import ShellLine, ShellWord, WordRole
from tools.shell.arithmetic import DYNAMIC, read_arithmetic, read_delimited
from tools.shell.expansions import find_set_by_expansion
from tools.shell.line_steps import DECLARING, MOVING, SETTING, LineStep, StepRole, list_steps
from tools.shell.lines import read_line
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.verdicts import NeedsApproval
from tools.shell.word_values import (
    EMPTY,
    HERE,
    NUMBER,
    UNKNOWN,
    Value,
    evaluate_elements,
    evaluate_word,
    join_values,
)

HARMLESS = """
: [ [[ true false echo pwd type jobs exit return break continue shift wait set test kill cd pushd popd trap umask times
help hash history ulimit dirs fg bg disown suspend caller
"""
SETTING_NOTHING = frozenset(HARMLESS.split())
"""Builtins that set no variable that a line may call its own."""
PASSING_ON = frozenset(("command", "time", "builtin", "-p", "--"))
"""What may stand in front of a builtin."""
ROUNDS = 8


class Values(Struct, frozen=True):
    known: Mapping[str, Value]
    is_open: bool = False
    """Something in the line may set any variable to anything."""
    arrays: frozenset[str] = frozenset()
    """What it makes arrays of."""

    def find(self, name: str, sure: frozenset[str]) -> Value:
        if self.is_open or (name not in sure and name not in DYNAMIC):
            return UNKNOWN
        if name in DYNAMIC:
            return NUMBER
        return self.known.get(name, UNKNOWN)


NO_VALUES = Values({})


def read_values(line: ShellLine) -> Values:
    """Collect what the line sets, again and again, because a value may come from another variable."""
    values = NO_VALUES
    try:
        for _ in range(ROUNDS):
            collector = _Collector(values, {})
            collector.collect(line, frozenset())
            found = Values(collector.found, collector.is_open, frozenset(collector.arrays))
            if found == values:
                return values
            values = found
    except NeedsApproval:
        pass
    return Values({}, is_open=True)


class _Collector:
    def __init__(self, values: Values, found: dict[str, Value]) -> None:
        self.values, self.found, self.is_open = values, found, False
        self.has_moved = False
        self.arrays = set[str]()

    def collect(self, line: ShellLine, sure: frozenset[str]) -> None:
        for step in list_steps(line, sure):
            for nested in step.command.nested:
                self.collect(nested, step.sure)
            for source in step.command.expansions:
                self.read_expansion(source)
            if step.kind is StepRole.ELEMENTS:
                self.arrays.add(step.name)
                self.set(step.name, evaluate_elements(step.words, self.bind(step)))
            elif step.kind is StepRole.LOOP:
                self.read_head(step)
            elif step.kind is StepRole.RUNS:
                self.has_moved = self.has_moved or step.wanders or any(word.text in MOVING for word in step.words)
                self.read_command(step)

    def bind(self, step: LineStep) -> "_Bound":
        return _Bound(self.values, step.sure)

    def set(self, name: str, value: Value) -> None:
        self.found[name] = join_values(self.found[name], value) if name in self.found else value

    def read_expansion(self, source: str) -> None:
        for part in source[:-2].partition("((")[2].split(";") if "((" in source[:3] else ():
            read = read_arithmetic(part)
            for name in read.sets if read else ():
                self.set(name, NUMBER)
        for name in find_set_by_expansion(source):
            self.set(name, UNKNOWN)

    def read_head(self, step: LineStep) -> None:
        words = step.words
        if len(words) > 1 and words[1].source == "in" and words[1].role is WordRole.KEYWORD:
            self.set(words[0].text, evaluate_elements(words[2:], self.bind(step)))
        elif words and not read_delimited(words[0].source):
            self.set(words[0].text, UNKNOWN)

    def read_command(self, step: LineStep) -> None:
        words = [word for word in step.words if word.role is not WordRole.TARGET]
        is_array = step.command.joined == "("
        if is_array and words and words[-1].role is WordRole.ASSIGNMENT:
            self.arrays.add(words[-1].source.rstrip("+="))
        settings = [*_take_settings(words)]
        rest = words[len(settings) :]
        for at, word in enumerate(settings):
            if not (is_array and not rest and at == len(settings) - 1):
                self.read_setting(word, step)
        rest = [*dropwhile(lambda word: word.text in PASSING_ON, rest)]
        if not rest:
            return
        name = rest[0].text
        if read_delimited(rest[0].source) and rest[0].source.startswith("(("):
            return
        if not rest[0].known:
            # In the first round nothing is known yet.
            self.is_open = self.is_open or (bool(self.values.known) and not self.bind(step).is_program(rest[0].source))
        elif name in DECLARING:
            self.read_declaration(rest[1:], step, is_array)
        elif name in SETTERS:
            SETTERS[name](self, rest[1:], step)
        elif name in BUILTIN_NAMES and name not in SETTING_NOTHING:
            self.is_open = True
        if name == "trap":
            self.read_trap(rest[1:], step)

    def read_setting(self, word: ShellWord, step: LineStep) -> None:
        name, _, source = word.source.partition("=")
        value = evaluate_word(source, self.bind(step))
        # Only where the line began is known to it.
        if self.has_moved and value.texts is not None and any(HERE in one for one in value.texts):
            value = UNKNOWN
        if name.endswith("]") or "[" in name:
            name = name.partition("[")[0]
            self.arrays.add(name)
        elif name.endswith("+"):
            name = name.removesuffix("+")
            # Digits behind digits are a number again.
            value = NUMBER if value.is_counting() else UNKNOWN
        self.set(name, value)

    def read_declaration(self, words: Sequence[ShellWord], step: LineStep, is_array: bool) -> None:
        for at, word in enumerate(words):
            if word.text.startswith(("-", "+")) or not word.source:
                # Only `-a` leaves the meaning of a value as it is.
                self.is_open = self.is_open or word.text not in ("-a", "-r", "-g", "-x", "--")
            elif is_array and at == len(words) - 1 and word.source.endswith("="):
                continue
            elif SETTING.fullmatch(word.source):
                self.read_setting(word, step)
            elif word.known and re.fullmatch(r"\w+", word.text):
                self.set(word.text, EMPTY)
            else:
                self.is_open = True

    def read_names(self, words: Sequence[ShellWord], _: LineStep) -> None:
        self.set("REPLY", UNKNOWN)
        for word in words:
            self.is_open = self.is_open or not word.known
            self.set(word.text, UNKNOWN)

    def read_unset(self, words: Sequence[ShellWord], _: LineStep) -> None:
        for word in words:
            self.is_open = self.is_open or not word.known
            self.set(word.text, UNKNOWN)
            self.set(f"{word.text}()", UNKNOWN)

    def read_let(self, words: Sequence[ShellWord], _: LineStep) -> None:
        for word in words:
            read = read_arithmetic(word.text) if word.known else None
            self.is_open = self.is_open or read is None
            for name in read.sets if read else ():
                self.set(name, NUMBER)

    def read_mapfile(self, words: Sequence[ShellWord], _: LineStep) -> None:
        names = [word for word in words if word.role is WordRole.WORD and word.source != "-t"]
        self.is_open = self.is_open or len(names) != 1 or not names[0].known
        for word in names:
            self.arrays.add(word.text)
            self.set(word.text, UNKNOWN)

    def read_printf(self, words: Sequence[ShellWord], _: LineStep) -> None:
        if len(words) > 2 and words[0].text == "-v" and words[1].known and words[2].known and words[2].text[:1] != "-":
            self.set(words[1].text, UNKNOWN)
            return
        self.is_open = self.is_open or any(not word.known or word.text.startswith("-v") for word in words[:1])

    def read_trap(self, words: Sequence[ShellWord], step: LineStep) -> None:
        line = read_line(words[0].text) if words and words[0].known else None
        if line is None:
            self.is_open = self.is_open or bool(words)
        else:
            self.collect(line, step.sure)


SETTERS = {
    "read": _Collector.read_names,
    "unset": _Collector.read_unset,
    "let": _Collector.read_let,
    "printf": _Collector.read_printf,
    **dict.fromkeys(("mapfile", "readarray"), _Collector.read_mapfile),
}


def _take_settings(words: Iterable[ShellWord]) -> Iterator[ShellWord]:
    for word in words:
        if word.role is not WordRole.ASSIGNMENT:
            return
        yield word


class _Bound:
    """The values as they are known at one place of the line."""

    def __init__(self, values: Values, sure: frozenset[str]) -> None:
        self.values, self.sure = values, sure

    def __call__(self, name: str) -> Value:
        return self.values.find(name, self.sure)

    def is_program(self, source: str) -> bool:
        value = evaluate_word(source, self)
        return value.texts is not None and BUILTIN_NAMES.isdisjoint(value.texts)
