"""Is an ending what a client of any revision can read, and never an error of the protocol?"""

import base64
import json

import pytest

from mcp_server.model.results import Code, Done, Picture, Problem, Question, Raw
from mcp_server.wire.translate import (
    ALWAYS,
    LONG_RESULT,
    build_tool_entry,
    prepare_tool,
    replace_half_surrogates,
    result_from_ending,
)
from tests.config.samples import made, opened
from tools.catalog import CATALOG

MENUS = opened().menus
TOOLS = {tool.name: tool for tool in CATALOG}


def test_done_is_text_and_blocks_and_data() -> None:
    ending = Done("text", {"a": 1}, blocks=(Picture(b"x", "image/png"), Raw({"type": "text", "text": "raw"})))
    result = result_from_ending(ending)
    assert [block["type"] for block in result["content"]] == ["text", "image", "text"]
    assert result["content"][1]["data"] == base64.b64encode(b"x").decode()
    assert (result["isError"], result["structuredContent"]) == (False, {"a": 1})
    assert result_from_ending(Done(""))["content"] == [{"type": "text", "text": ""}], "never nothing at all"
    assert len(result_from_ending(Done("", blocks=(Picture(b"x", "image/png"),)))["content"]) == 1


def test_a_refusal_says_its_code_to_programs_too() -> None:
    result = result_from_ending(Problem(Code.WRONG_MODE, "not here", "go there", {"layer": "mode"}))
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Error WRONG_MODE: not here")
    assert result["_meta"]["menugate/refusal"] == {"code": "WRONG_MODE", "layer": "mode"}
    assert result_from_ending(Question("q", "which?"))["isError"] is True


@pytest.mark.parametrize("text", ["half \ud800 a sign", "grüße"])
def test_whatever_it_says_can_be_sent(text: str) -> None:
    for ending in (
        Done(text, {text: [text]}, blocks=(Raw({"type": "text", "text": text}),)),
        Problem(Code.INTERNAL, text),
    ):
        json.dumps(result_from_ending(ending), ensure_ascii=False).encode()
    plain = {"a": "b"}
    assert replace_half_surrogates(plain) is plain


def test_only_what_is_always_there_is_kept_loaded() -> None:
    entries = {name: build_tool_entry(tool, MENUS).get("_meta", {}) for name, tool in TOOLS.items()}
    assert {name for name, meta in entries.items() if ALWAYS.items() <= meta.items()} == {
        name for name in TOOLS if name.startswith("menu_") or name in ("complete", "think", "message_user")
    }
    assert {name for name, meta in entries.items() if LONG_RESULT.items() <= meta.items()} == {
        name for name, tool in TOOLS.items() if tool.large
    }


def test_the_modes_are_a_choice_of_the_tool_that_enters_them() -> None:
    entry = build_tool_entry(TOOLS["menu_enter"], MENUS)
    assert entry["inputSchema"]["properties"]["mode"]["enum"] == [mode.name for mode in MENUS]
    assert "swe" in entry["description"]
    tool = made("other")
    assert build_tool_entry(tool, MENUS)["inputSchema"] is tool.arguments


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_every_tool_can_be_listed(version: str) -> None:
    for name, tool in TOOLS.items():
        assert prepare_tool(tool, MENUS, version)["name"] == name
