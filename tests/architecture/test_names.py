"""Does every name say what it stands for, and stand for one thing?"""

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.architecture.test_rooms import HOUSE, dotted, modules, parsed

BARE = frozenset(
    """
    allowed answered asked called chosen closed done drawn ended filled folded forgotten found
    gathered given gone heard held hidden joined judged kept known led left lifted listed looked
    lost made marked matched mended met moved named noted obeyed opened owned passed paused placed
    raised refused said seen sent shortened shown sorted_out spent started stopped taken thrown told
    tried typed walked wanted warned woken written
    """.split()  # noqa: SIM905  # one word a line would be a page
)
"""Participles: they tell neither what is done nor what comes back."""


def classes() -> Iterator[tuple[str, str]]:
    """Of the code, of the benchmarks and of what the tests share; a test module's own classes are seen nowhere else."""
    beside = (path for top in ("bench", "tests") for path in sorted((HOUSE / top).rglob("*.py")))
    for path in (*modules(), *(path for path in beside if not path.name.startswith("test_"))):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, dotted(path)


def functions() -> Iterator[tuple[str, str]]:
    """Those of modules, `name`, and those of classes, `Class.name`, with the file they are in."""
    for path in modules():
        where = str(path.relative_to(HOUSE))
        for node in parsed(path).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, where
            elif isinstance(node, ast.ClassDef):
                found = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
                yield from ((f"{node.name}.{one.name}", where) for one in found)


def test_a_class_has_a_name_of_its_own() -> None:
    found = defaultdict[str, list[str]](list)
    for name, where in classes():
        found[name].append(where)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_no_function_is_a_bare_participle() -> None:
    assert [(name, where) for name, where in functions() if name.rpartition(".")[2].strip("_") in BARE] == []
