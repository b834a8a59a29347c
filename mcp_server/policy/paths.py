"""Is the path in a call the one that a predicate names? Paths are normalized before they are compared.

`./docs//a.md`, `src/../docs/a.md`, `docs/a.md/` and the absolute path of the workspace's `docs/a.md` all become
`docs/a.md`; a path outside stays absolute. A rule that narrows ignores case wherever that narrows more, because some
disks ignore it too.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

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
    """Return the path relative to the workspace if it lies there, `.` for the workspace itself."""
    parts = split_path(path, roots)
    text = ROOT + "/".join(parts[1:]) if parts[:1] == (ROOT,) else "/".join(parts)
    return unicodedata.normalize("NFC", text or ".")


def build_place_test(
    predicate: Predicate, cautious: bool, roots: Sequence[str], test_of: Callable[[Predicate], Test]
) -> Test:
    """Build the test of an argument that names paths; `test_of` builds the test of normalized values."""
    op, value = predicate.op, predicate.value
    if op is PredicateOperator.EXISTS:
        return test_of(predicate)
    # Ignoring case makes `eq` match more calls and `neq` fewer, so a rule that narrows ignores it only for the former.
    folds = op in EXACT and cautious is not (op in OPPOSITE)

    def fold(text: str) -> str:
        return text.casefold() if folds else text

    def normalize(path: str) -> str:
        return fold(normalize_path(path, roots))

    test = test_of(replace(predicate, value=_normalize_value(op, value, normalize, roots)))
    substring = fold(unicodedata.normalize("NFC", value)) if isinstance(value, str) else None

    def test_argument(argument: Any) -> bool | None:
        if isinstance(argument, str):
            if len(argument) > LONGEST or "\0" in argument:
                return None
            path = normalize(argument)
            return substring in path if op is PredicateOperator.CONTAINS and substring is not None else test(path)
        if isinstance(argument, list | tuple):
            items = cast(Sequence[Any], argument)
            return test([normalize(each) if isinstance(each, str) and len(each) <= LONGEST else each for each in items])
        return test(argument)

    return test_argument


def _normalize_value(op: PredicateOperator, value: Any, normalize: Callable[[str], str], roots: Sequence[str]) -> Any:
    if op is PredicateOperator.REGEX:
        return unicodedata.normalize("NFC", value)
    if op is PredicateOperator.GLOB:
        return value if ".." in value else normalize_path(value, roots)
    if isinstance(value, list):
        return [normalize(each) if isinstance(each, str) else each for each in cast(list[Any], value)]
    return normalize(value) if isinstance(value, str) else value
