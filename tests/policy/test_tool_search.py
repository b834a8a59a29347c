"""Does a search for tools find what was meant, whatever it is called, quickly, and always in the same order?"""

import random
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.menus import Menus, Mode
from mcp_server.model.tools import Tool
from mcp_server.policy.tool_search import ToolIndex, count_wrong_letters
from tests.sizes import sample, scale
from tests.upstreams.catalogues import NO_MENUS, TOOLS
from tools.catalog import CATALOG

SMALL = next(tool for tool in TOOLS if tool.written == "memory:read_graph")


def make_tool(name: str, description: str = "", **more: Any) -> Tool:
    return replace(SMALL, name=name, title=name, description=description, written=None, **more)


def rank(need: str, *tools: Tool, related: str = "", menus: Menus = NO_MENUS) -> list[str]:
    words, _, meanings = related.partition(">")
    lines = [(tuple(words.split()), tuple((meanings or words).split()))] if related else []
    return [match.tool for match in ToolIndex.build(tools, menus, lines).rank(need)]


MOVE, COPY, ZIP = make_tool("move_file"), make_tool("copyFile"), make_tool("zip", "Pack a folder. Keeps its layout.")


@pytest.mark.parametrize(
    ("need", "first"),
    [
        ("moving", "move_file"),
        ("a copy", "copyFile"),
        ("copies of it", "copyFile"),
        ("copyfile", "copyFile"),
        ("mvoe", "move_file"),
        ("foldr", "zip"),
        ("layout", "zip"),
        ("fold", "zip"),
        ("pac king", "zip"),
        ("MOVE!", "move_file"),
    ],
)
def test_words_are_found_in_every_form_and_spelling(need: str, first: str) -> None:
    assert rank(need, COPY, ZIP, MOVE)[:1] == [first]


@pytest.mark.parametrize("need", ["", "   ", "the of and", "xyzzy", "!?", "0", "\u0000", "ein Bild zeigen"])
def test_what_no_tool_has_finds_nothing(need: str) -> None:
    assert rank(need, COPY, ZIP, MOVE) == []


def test_a_short_word_is_not_taken_for_a_misspelling() -> None:
    assert rank("zap", ZIP) == []


def test_a_related_word_counts_less_than_the_word_itself() -> None:
    shift, relocate = make_tool("shift"), make_tool("relocate")
    assert rank("relocate", shift, relocate, related="shift relocate") == ["relocate", "shift"]
    assert rank("shift", shift, relocate, related="relocate > shift") == ["shift"]


def test_a_word_in_the_name_counts_more_than_one_in_the_details() -> None:
    detail = make_tool("one", "Do it. It may rename the file.")
    assert rank("rename", detail, make_tool("rename_it", "Do it.")) == ["rename_it", "one"]


def test_arguments_are_searched_as_deep_as_they_go() -> None:
    schema = {"properties": {"edits": {"items": {"properties": {"colour": {"description": "as hexadecimal"}}}}}}
    tool = make_tool("paint", arguments=schema)
    assert rank("colour", ZIP, tool) == rank("hexadecimal", ZIP, tool) == ["paint"]


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": 3, "b": {"enum": [1, None]}}}])
def test_any_schema_is_read(schema: dict[str, object]) -> None:
    assert rank("paint", make_tool("paint", arguments=schema)) == ["paint"]


def test_the_words_of_a_mode_find_its_tools() -> None:
    mode = Mode("deploy", "Deployment", "", "", "", "to bring a site online", "", (ZIP.name,), ("publishing",))
    assert rank("publish it", MOVE, ZIP, menus=Menus((mode,))) == ["zip"]


def test_equals_stay_in_the_order_given() -> None:
    twins = [make_tool(f"twin_{letter}") for letter in "zxy"]
    assert rank("twin", *twins) == ["twin_z", "twin_x", "twin_y"]


def test_a_tool_is_found_by_its_own_name_first() -> None:
    """For every tool of menugate and of the recorded servers."""
    tools = (*(tool for tool in CATALOG if not tool.meta), *TOOLS)
    index = ToolIndex.build(tools, NO_MENUS)
    names = {tool.name: tool.written.partition(":")[2] if tool.written else tool.name for tool in tools}
    lost = [name for name, own in names.items() if own not in {names[match.tool] for match in index.rank(own)[:3]}]
    assert lost == []


@pytest.mark.heavy
@settings(max_examples=scale(2_000), deadline=None, derandomize=True)
@given(st.text(max_size=80))
def test_any_text_gives_known_tools_once_and_in_order(need: str) -> None:
    matches = INDEX.rank(need)
    assert len({match.tool for match in matches}) == len(matches)
    assert all(match.score > 0 for match in matches)
    assert [round(match.score, 6) for match in matches] == sorted((round(m.score, 6) for m in matches), reverse=True)
    assert INDEX.rank(need) == matches


INDEX = ToolIndex.build(TOOLS, NO_MENUS)


@pytest.mark.heavy
@settings(max_examples=scale(5_000), deadline=None, derandomize=True)
@given(st.text(alphabet="abc", max_size=7), st.text(alphabet="abc", max_size=7))
def test_wrong_letters_are_counted_as_a_distance(one: str, other: str) -> None:
    distance = count_wrong_letters(one, other)
    assert distance == count_wrong_letters(other, one)
    assert (distance == 0) is (one == other)
    assert abs(len(one) - len(other)) <= distance <= max(len(one), len(other))


@pytest.mark.parametrize(("wrong", "count"), [("mesage", 1), ("wihtout", 1), ("eddit", 1), ("fole", 1), ("elif", 3)])
def test_one_slip_of_the_fingers_is_one_wrong_letter(wrong: str, count: int) -> None:
    right = {"mesage": "message", "wihtout": "without", "eddit": "edit", "fole": "file", "elif": "file"}[wrong]
    assert count_wrong_letters(wrong, right) == count


def make_many_tools(count: int) -> list[Tool]:
    """Tools whose texts have words of their own, as those of a thousand servers would."""
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefghilmnoprstu", k=dice.randint(4, 10))) for _ in range(3_000)]
    return [
        replace(tool, name=f"{tool.name}_{n}", description=f"{tool.description} {' '.join(dice.choices(words, k=12))}")
        for n in range(count // len(TOOLS) + 1)
        for tool in TOOLS
    ][:count]


@pytest.mark.heavy
def test_a_thousand_tools_are_searched_in_under_five_milliseconds() -> None:
    index = ToolIndex.build(make_many_tools(1_000), NO_MENUS)
    needs = [f"{tool.title} of my old project, with mispeled wrods" for tool in sample(TOOLS)]
    took: list[float] = []
    for need in needs:
        began = time.process_time_ns()
        index.rank(need)
        took.append((time.process_time_ns() - began) / 1e6)
    assert sorted(took)[len(took) // 2] < 5, took
