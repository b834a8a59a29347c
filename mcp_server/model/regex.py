"""Is it safe to compile this regular expression? Decided from its characters, before any engine parses it.

A compiler copies a part as often as it must repeat at least, so a few characters become gigabytes, and the server
stalls. A recursive pattern takes memory faster than any time limit can stop it.
"""

import re
from dataclasses import dataclass, field
from typing import TypeAlias

MAX_STEPS = 50_000
MAX_DEPTH = 100
"""Nested groups; a compiler recurses as deep as the pattern."""
TOKEN = re.compile(
    r"\\(?:[pPN]\{[\w :=.^-]*\}|.)"  # an escape, with what its braces hold
    r"|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]?"  # a character set
    r"|\(\?#[^)]*\)?"  # a comment
    r"|(?P<itself>\(\?(?:R|[+-]?\d+|&\w*|P[>&]\w*)\))"
    r"|(?P<spread>\(\?[a-zA-Z0-9]*x[a-zA-Z0-9-]*[:)])"
    r"|(?P<open>\((?:\?(?:P?<\w+>|P?<?[=!]|[>|]|[\w-]*:)?)?)"
    r"|(?P<close>\))"
    r"|\{(?P<least>\d*)(?P<more>,\d*)?\}"
    r"|.",
    re.DOTALL,
)


@dataclass
class Size:
    """The expanded size of a pattern: of all of it so far, and of the last part, which a repeat may follow."""

    groups: list[int] = field(default_factory=lambda: [0])
    last: int = 0

    def add(self, steps: int) -> None:
        self.groups[-1] += steps
        self.last = steps

    def repeat(self, times: int) -> None:
        more = self.last * (max(times, 1) - 1)
        self.groups[-1] += more
        self.last += more

    def close(self) -> None:
        inside = self.groups.pop() if len(self.groups) > 1 else 0
        self.add(inside + 1)


def describe_pattern_danger(pattern: str) -> str | None:
    """Say why it must not be compiled; None if it may be."""
    size = Size()
    for token in TOKEN.finditer(pattern):
        if token["itself"]:
            return "it is recursive"
        if token["spread"]:
            return "it uses `(?x)`; write it without extra spaces and comments"
        if token["open"]:
            size.groups.append(0)
        elif token["close"]:
            size.close()
        elif token["least"] is not None:
            size.repeat(int(token["least"] or 0) if len(token["least"]) < 10 else MAX_STEPS + 1)
        else:
            size.add(1)
        if len(size.groups) > MAX_DEPTH:
            return f"its groups are nested more than {MAX_DEPTH} deep"
        if sum(size.groups) > MAX_STEPS:
            return "its repeats make it too large"
    return None


# Does it take exponential time on some text? Hosts check arguments with engines that try every way to match.

SAMPLES = "".join(map(chr, range(32, 127))) + "\t\n\u00e9\u65e5"
ZERO_WIDTH = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"})
Chars: TypeAlias = frozenset[str]


@dataclass
class Branch:
    """One alternative of a group, with what is in it: the parts that repeat, and the characters that must occur."""

    loops: list[Chars] = field(default_factory=list[Chars])
    required: list[Chars] = field(default_factory=list[Chars])
    every: Chars = frozenset()
    unsafe: list[Chars] = field(default_factory=list[Chars])
    """The loops of this and earlier alternatives that nothing separates from their own repetition."""
    group: "Branch | None" = None
    """The last part, if it was a group."""

    def end(self) -> None:
        separated = [loop for loop in self.loops if any(not (one & loop) for one in self.required)]
        self.unsafe += [loop for loop in self.loops if loop not in separated]
        self.loops, self.required = [], []

    def add(self, chars: Chars) -> None:
        self.group, self.every = None, self.every | chars
        self.required.append(chars)

    def add_group(self, group: "Branch") -> None:
        self.add(group.every)
        self.group = group
        self.loops += group.unsafe

    def repeat(self, least: int, unbounded: bool) -> bool:
        """Repeat the last part; return True if it can be split between two loops in ever more ways."""
        last = self.required[-1] if self.required else frozenset[str]()
        unsafe = unbounded and self.group is not None and bool(self.group.unsafe)
        if unbounded:
            self.loops.append(last)
        if self.required and least == 0:
            self.required.pop()
        self.group = None
        return unsafe


def is_exponential(pattern: str) -> bool:
    """True if a loop repeats another one, with nothing that would tell where one round ends: `(a+)+`, `(\\w+ ?)*`."""
    open_groups = [Branch()]
    for token in TOKEN.finditer(pattern):
        top, text = open_groups[-1], token[0]
        if token["open"]:
            open_groups.append(Branch())
        elif token["close"]:
            top.end()
            if len(open_groups) > 1:
                open_groups.pop()
                open_groups[-1].add_group(top)
        elif text == "|":
            top.end()
        elif text in ("*", "+", "?") or token["least"] is not None:
            least = int(token["least"] or 0) if token["least"] is not None and len(token["least"]) < 10 else text == "+"
            if top.repeat(int(least), text in ("*", "+") or token["more"] == ","):
                return True
        elif text not in ZERO_WIDTH:
            top.add(_list_samples(text))
    return False


def _list_samples(token: str) -> Chars:
    """List the samples that one part of a pattern matches; all of them if Python does not know it."""
    try:
        part = re.compile(token, re.DOTALL)
    except re.error:
        return frozenset(SAMPLES)
    return frozenset(char for char in SAMPLES if part.fullmatch(char))
