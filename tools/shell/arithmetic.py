"""Does this arithmetic only compute?

bash evaluates what a variable contains as well, so `a[$(x)]` in it would run `x`: each variable must hold a number.
"""

import re
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from msgspec import Struct

from mcp_server.model.text import quote_text
from tools.shell.verdicts import NeedsApproval

IsOwn: TypeAlias = Callable[[str], bool]
"""May the line set this variable?"""
COMPUTED = re.compile(
    r"\$\((?P<line>(?:nproc|date \+%s|(?:[\w./*= -]+\|)* *wc -[lcmw](?: *< *(?:[\w./-]+|\"?\$\{?\w+\}?\"?))?) *)\)",
    re.ASCII,
)
"""Substitutions that become a number. The commands in them are judged by themselves."""
TOKEN = re.compile(
    r"(?P<blank>[ \t\n]+)"
    r"|(?P<number>\d+#(?:[0-9A-Za-z]+|(?=\$))|0[xX][0-9A-Fa-f]+|\d+)"
    r"|(?P<count>\$[#?]|\$\{[#?]\}|\$\{#\w+(?:\[[@*]\])?\})"
    rf"|(?P<computed>{COMPUTED.pattern})"
    r"|\$\{(?P<braced>[A-Za-z_]\w*)\}|\$(?P<inserted>[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>[-+*/%<>=!&|?:,~^();])"
)
"""No brackets, quotes or substitutions."""
SETTING = re.compile(r"[ \t\n]*(?P<changed>[-+*/%&|^]|<<|>>)?=(?!=)")
COUNTING = re.compile(r"[ \t\n]*(?:\+\+|--)")
COUNTED = re.compile(r"(?:\+\+|--)[ \t\n]*")
DYNAMIC = frozenset(("RANDOM", "SECONDS", "LINENO"))
"""bash computes these itself."""
DELIMITED = re.compile(r"\$?\(\((.*)\)\)", re.DOTALL)


class IsNumber(Protocol):
    def __call__(self, name: str, begun: frozenset[str] = ...) -> bool:
        """Is it certain that the variable holds a number, or nothing? What has `begun` is set by now."""
        ...


class Arithmetic(Struct, frozen=True):
    uses: frozenset[str]
    sets: frozenset[str]


def read_arithmetic(text: str) -> Arithmetic | None:
    """Read what stands between `((` and `))`; None if it may be more than numbers, names and signs."""
    uses, sets = set[str](), set[str]()
    depth = at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            return None
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        # With `a) * (b`, bash would start commands in subshells.
        if depth < 0:
            return None
        uses.update(name for name in (token["braced"], token["inserted"]) if name)
        if name := token["name"]:
            setting = SETTING.match(text, token.end())
            is_counted = COUNTING.match(text, token.end()) or re.search(COUNTED.pattern + r"\Z", text[:at])
            if setting or is_counted:
                sets.add(name)
            if not setting or setting["changed"]:
                uses.add(name)
        at = token.end()
    return Arithmetic(frozenset(uses), frozenset(sets)) if depth == 0 else None


def read_delimited(source: str) -> Arithmetic | None:
    """Read `((…))` or `$((…))`."""
    inner = DELIMITED.fullmatch(source)
    return read_arithmetic(inner[1]) if inner else None


def find_computed(source: str) -> Iterator[tuple[int, str]]:
    """Find the commands in arithmetic that was read, each with its place. The rest of it contains none."""
    for one in COMPUTED.finditer(source):
        yield one.start("line"), one["line"]


def judge_arithmetic(source: str, read: Arithmetic | None, is_number: IsNumber, is_own: IsOwn) -> None:
    """Raises NeedsApproval."""
    if read is None:
        raise NeedsApproval(f"the arithmetic in {quote_text(source)} may do more than compute")
    for name in sorted(read.uses):
        if name not in DYNAMIC and not is_number(name):
            raise NeedsApproval(
                f"bash would compute what {quote_text(name)} contains, which is not known to be a number"
            )
    for name in sorted(read.sets):
        if not is_own(name):
            raise NeedsApproval(f"setting {quote_text(name)} may change which code runs")


def judge_loop_head(source: str, is_number: IsNumber, is_own: IsOwn) -> None:
    """Judge the `((i=0; i<3; i++))` behind `for`. What the first part sets is set in the others."""
    inner = DELIMITED.fullmatch(source)
    parts = inner[1].split(";") if inner else [""]
    begun = find_first_set(parts[0])
    judge_arithmetic(source, read_arithmetic(parts[0]), is_number, is_own)

    def is_number_then(name: str, begun: frozenset[str] = begun) -> bool:
        return is_number(name, begun)

    for part in parts[1:]:
        judge_arithmetic(source, read_arithmetic(part), is_number_then, is_own)


FIRST_SET = re.compile(r"[ \t\n]*([A-Za-z_]\w*)[ \t\n]*=(?!=)")


def find_first_set(text: str) -> frozenset[str]:
    """Find the variables that this surely sets: those in front of `,`, if nothing before them is conditional."""
    return frozenset(_iterate_first_sets(text))


def _iterate_first_sets(text: str) -> Iterator[str]:
    for part in text.split(","):
        if match := FIRST_SET.match(part):
            yield match[1]
        if re.search(r"[?&|()]", part):
            return
