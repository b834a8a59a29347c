"""May this regular expression be tried at all? Told from its signs, before anything takes it apart.

A pattern is written out as often as it says at least, so that a few signs become gigabytes, and while that happens
nobody else is served; one that goes on inside itself takes memory faster than any limit of time ends it.
"""

import re
from dataclasses import dataclass, field

MOST_STEPS = 50_000
DEEPEST = 100
"""Groups inside of each other; what takes a pattern apart goes as deep as the pattern."""
TOKEN = re.compile(
    r"\\(?:[pPN]\{[\w :=.^-]*\}|.)"  # an escape, with what its braces hold
    r"|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]?"  # a set
    r"|\(\?#[^)]*\)?"  # a remark
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
    """How much a pattern becomes: all of it so far, and the last part, which may be said to come several times."""

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
    """Why it is not tried, None where it may be."""
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
