"""Is it safe to compile this regular expression? Decided from its characters, before any engine parses it.

A compiler copies a part as often as it must repeat at least, so a few characters become gigabytes, and the server
stalls. A recursive pattern takes memory faster than any time limit can stop it.
"""

import re
from dataclasses import dataclass, field

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
