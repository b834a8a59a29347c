"""Are the classes of values made of structs? A frozen dataclass takes fifty times as long to make, at every start."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.test_rooms import dotted, modules, parsed

NEEDS_A_DATACLASS = re.compile(r"repr=False|compare=False|init=False|eq=False|order=True|__post_init__|def __init__")
"""What a struct cannot do, or not as shortly."""
READER = "mcp_server.guards.readers."
"""Its modules run in a process of their own, with the standard library alone."""


def slow_values(tree: ast.Module) -> Iterator[str]:
    fields = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name, node in fields.items():
        marks = "\n".join(map(ast.unparse, node.decorator_list))
        if re.search(r"dataclass\(.*frozen=True", marks) and not NEEDS_A_DATACLASS.search(
            f"{marks}\n{ast.unparse(node)}"
        ):
            yield name


def test_what_never_changes_is_a_struct() -> None:
    found = {dotted(path): list(slow_values(parsed(path))) for path in modules()}
    assert {name: slow for name, slow in found.items() if slow and not name.startswith(READER)} == {}


def test_a_planted_one_is_found() -> None:
    planted = "@dataclass(frozen=True, slots=True)\nclass Slow:\n    x: int\n"
    assert list(slow_values(ast.parse(planted))) == ["Slow"]
    assert list(slow_values(ast.parse(planted.replace("x: int", "x: int = field(repr=False)")))) == []
