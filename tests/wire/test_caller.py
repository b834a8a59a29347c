"""Is the surface read off a call as the table says, and out of reach of everything that decides?"""

import ast
from pathlib import Path
from typing import Any

import pytest

from mcp_server import policy
from mcp_server.model.posture import AXES, Posture, Surface
from mcp_server.wire.caller import observe_surface
from tests.yaml_text import load_yaml

HOUSE = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = load_yaml((HOUSE / "tests" / "tables" / "surfaces.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table(case: dict[str, Any]) -> None:
    seen = {name: case[name] for name in ("terminal", "page", "asks") if name in case}
    assert observe_surface(case["transport"], **seen) is Surface(case["surface"])


def test_the_table_has_each_of_them() -> None:
    assert {case["surface"] for case in CASES} == {str(one) for one in Surface}


def test_no_choice_and_no_decision_has_it() -> None:
    """What a decision is made of cannot hold it, so that none depends on it."""
    assert "surface" not in AXES
    assert not hasattr(Posture(), "surface")
    sources = [path for path in Path(policy.__file__).parent.rglob("*.py") if path.stem != "surfaces"]
    assert sources
    for path in sources:
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not {"Surface", "surface"} & (names | attributes), path
