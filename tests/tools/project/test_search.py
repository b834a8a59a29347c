"""Does an answer say which part of what was found it is, and how fresh it is?"""

import json
from dataclasses import dataclass
from typing import Any, cast

import pytest

from mcp_server.model.context import Context
from mcp_server.model.index import Freshness, Symbol
from tools.project.search import describe_freshness, format_closing_note, format_next_call, format_symbol

ARGUMENTS: dict[str, Any] = {"query": "grüße"}


@dataclass
class Given:
    hides: object = None


def describe(now: Freshness, hides: object = None) -> str:
    return describe_freshness(now, cast(Context, Given(hides)))


def test_the_call_that_goes_on_can_be_made_as_it_stands() -> None:
    told = format_next_call("index_search", ARGUMENTS, 20, 45)
    assert told.startswith("Entries 1-20 of 45. Continue with index_search ")
    assert json.loads(told[told.index("{") :]) == {**ARGUMENTS, "offset": 20}
    assert "grüße" in told
    assert format_next_call("index_search", {**ARGUMENTS, "offset": 40}, 5, 45) == "Entries 41-45 of 45."


@pytest.mark.parametrize(
    ("offset", "shown", "total", "complete", "told"),
    [
        (0, 5, 5, True, ""),
        (0, 0, 0, True, ""),
        (9, 0, 5, True, "There are no entries from 10 on: only 5 were found."),
        (0, 5, 5, False, "There may be more than these 5: the search ran out of time or space, so narrow it."),
    ],
)
def test_where_that_was_all_nothing_goes_on(offset: int, shown: int, total: int, complete: bool, told: str) -> None:
    assert format_next_call("index_search", {"offset": offset}, shown, total, complete) == told


def test_how_fresh_it_is() -> None:
    assert describe(Freshness(True, 1)) == "Index of 1 file, as they are now."
    whole = describe(Freshness(True, 1_200, left_out={"too large": 3, "binary": 1}))
    assert whole == "Index of 1,200 files, as they are now; not in it: 1 binary, 3 too large."
    assert "still being built: 7 files so far" in describe(Freshness(False, 7))
    assert describe(Freshness(True, 1), hides=len).startswith("Files that a rule hides from this tool are left out. ")


def test_a_symbol_is_one_line() -> None:
    assert format_symbol(Symbol("run", "function", "a.py", 3, 9, "App", "def run():")) == (
        "a.py:3-9: function App.run: def run():"
    )
    assert format_symbol(Symbol("run", "function", "a.py", 3, 3, "", "def run():")).startswith("a.py:3: ")
    assert format_closing_note("One.", "", "Two.") == "\n[One. Two.]"
