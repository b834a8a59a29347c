"""Is a definition found by the name that somebody writes for it?"""

import pytest

from mcp_server.model.index import Symbol
from tools.project.read import find_definitions


def symbol(full_name: str) -> Symbol:
    within, _, name = full_name.rpartition(".")
    return Symbol(name, "function", "a.py", 1, 2, within, "def x():")


SYMBOLS = [symbol(name) for name in ("run", "App.run", "App.Run", "Other.App.close", "stop")]


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        ("run", ["run"]),
        ("App.run", ["App.run"]),
        ("App::run", ["App.run"]),
        ("App#run", ["App.run"]),
        (" App.close ", ["Other.App.close"]),
        ("close", ["Other.App.close"]),
        ("STOP", ["stop"]),
        ("app.RUN", ["App.run", "App.Run"]),
        ("unrun", []),
        ("top", []),
    ],
)
def test_the_whole_name_counts_before_its_end_and_that_before_its_case(wish: str, names: list[str]) -> None:
    assert [one.full_name for one in find_definitions(SYMBOLS, wish)] == names
