"""Is the path in a call the one that a predicate is about? Every path has one spelling before it is compared.

`./docs//a.md`, `src/../docs/a.md`, `docs/a.md/` and the absolute path of the workspace's `docs/a.md` are all
`docs/a.md`; what lies elsewhere is absolute. A rule that narrows takes upper and lower case for one where that narrows
more, because on some disks they are.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from mcp_server.policy.globs import LONGEST, ROOT, split_path
from mcp_server.policy.rule_syntax import Predicate, PredicateOperator

Test: TypeAlias = Callable[[Any], bool | None]
EXACT = frozenset(
    (
        PredicateOperator.EQ,
        PredicateOperator.NEQ,
        PredicateOperator.IN,
        PredicateOperator.NOT_IN,
        PredicateOperator.CONTAINS,
    )
)
OPPOSITE = frozenset((PredicateOperator.NEQ, PredicateOperator.NOT_IN))


def normalize_path(path: str, roots: Sequence[str]) -> str:
    """The one spelling of a path: from the workspace on where it lies there, `.` for the workspace itself."""
    parts = split_path(path, roots)
    text = ROOT + "/".join(parts[1:]) if parts[:1] == (ROOT,) else "/".join(parts)
    return unicodedata.normalize("NFC", text or ".")


def build_place_test(
    predicate: Predicate, cautious: bool, roots: Sequence[str], test_of: Callable[[Predicate], Test]
) -> Test:
    """The predicate as a test of one argument that names places; `test_of` makes the test of what is spelled alike."""
    op, value = predicate.op, predicate.value
    if op is PredicateOperator.EXISTS:
        return test_of(predicate)
    # For who equals, one spelling more is one call more; for who differs it is one call less.
    folds = op in EXACT and cautious is not (op in OPPOSITE)

    def fold(text: str) -> str:
        return text.casefold() if folds else text

    def normalize(path: str) -> str:
        return fold(normalize_path(path, roots))

    wanted = replace(predicate, value=_normalize_wanted(op, value, normalize, roots))
    test, inside = test_of(wanted), fold(unicodedata.normalize("NFC", value)) if isinstance(value, str) else None

    def test_value(found: Any) -> bool | None:
        if isinstance(found, str):
            if len(found) > LONGEST or "\0" in found:
                return None
            return (
                inside in normalize(found)
                if op is PredicateOperator.CONTAINS and inside is not None
                else test(normalize(found))
            )
        if isinstance(found, list | tuple):
            many = cast(Sequence[Any], found)
            return test([normalize(each) if isinstance(each, str) and len(each) <= LONGEST else each for each in many])
        return test(found)

    return test_value


def _normalize_wanted(op: PredicateOperator, value: Any, one: Callable[[str], str], roots: Sequence[str]) -> Any:
    if op is PredicateOperator.REGEX:
        return unicodedata.normalize("NFC", value)
    if op is PredicateOperator.GLOB:
        return value if ".." in value else normalize_path(value, roots)
    if isinstance(value, list):
        return [one(each) if isinstance(each, str) else each for each in cast(list[Any], value)]
    return one(value) if isinstance(value, str) else value
