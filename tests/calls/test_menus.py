"""Is a menu's text short, and does a pinned place say that it cannot be left?"""

import pytest

from mcp_server.calls.menus import build_pinned_problem, build_tool_entries, format_tool_list
from mcp_server.model.results import Code
from mcp_server.model.text import first_sentence
from tools.catalog import CATALOG


@pytest.mark.parametrize(
    ("text", "first"),
    [("Reads a file. With line numbers.", "Reads a file."), ("Reads `a.md` whole", "Reads `a.md` whole"), ("", "")],
)
def test_the_first_sentence_is_enough(text: str, first: str) -> None:
    assert first_sentence(text) == first


def test_a_list_has_a_line_for_every_tool_and_says_the_same_as_its_data() -> None:
    tools = list(CATALOG)
    lines = format_tool_list(tools).split("\n")
    assert len(lines) == len(tools)
    for line, entry in zip(lines, build_tool_entries(tools), strict=True):
        assert line == f"- {entry['name']}({entry['arguments']}): {entry['description']}"


def test_a_pinned_place_names_itself_and_the_other_ways() -> None:
    problem = build_pinned_problem("swe")
    assert problem.code is Code.WRONG_MODE
    assert "`swe`" in problem.message
    assert "Other modes are on other endpoints" in (problem.way_out or "")
