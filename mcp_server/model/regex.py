"""May this regular expression be compiled at all? Decided from its characters, before any engine parses it.

A compiler writes a part out as often as its repeat says at least, so a few characters become gigabytes, and nobody else
is served meanwhile. A recursive pattern takes memory faster than any time limit can stop it.
"""

import re
from dataclasses import dataclass, field

MOST_STEPS = 50_000
DEEPEST = 100
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
    for found in TOKEN.finditer(pattern):
        if found["itself"]:
            return "it goes on inside itself"
        if found["spread"]:
            return "it is spread out by `(?x)`; write it without spaces and remarks"
        if found["open"]:
            size.groups.append(0)
        elif found["close"]:
            size.close()
        elif found["least"] is not None:
            size.repeat(int(found["least"] or 0) if len(found["least"]) < 10 else MOST_STEPS + 1)
        else:
            size.add(1)
        if len(size.groups) > DEEPEST:
            return f"its groups lie more than {DEEPEST} deep inside of each other"
        if sum(size.groups) > MOST_STEPS:
            return "it becomes too large, because of what it says comes so many times"
    return None
