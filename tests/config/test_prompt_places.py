"""Are the words found in their order, filled once and exactly, and kept inside of their folders?"""

import ast
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.config.load import DATA
from mcp_server.config.prompt_checks import INVENTORY
from mcp_server.config.prompts import LARGEST, VARIABLES, PromptError, PromptFolder, Prompts

SHIPPED = PromptFolder("shipped", DATA / "prompts")

NOT_YET_SAID = (
    *("agent/empty_response_recovery", "agent/user_input_request_block", "corrections/force_tool_followup"),
    *("corrections/no_user_input_next_step", "corrections/empty_response_followup", "corrections/tool_failure"),
    *("delivery_gate/reasoning_format_correction", "delivery_gate/low_quality_reasoning"),
    *("delivery_gate/reasoning_only_no_answer", "delivery_gate/enforce_delivery_completion"),
    *("qa/tool_output_review_system", "qa/quality_review_system", "qa/report_schema"),
)
"""Prompts that a person may pick, and no code names yet. The list only shrinks; what reaches a model, and when, is in
tests/tables/prompts_delivered.yaml."""


def words(folder: Path, **texts: str) -> Prompts:
    for key, text in texts.items():
        path = folder / f"{key.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Prompts((PromptFolder("mine", folder), SHIPPED))


def test_the_inventory_is_what_lies_there() -> None:
    there = set(Prompts((SHIPPED,)).list_keys())
    assert [f"`{key}` is in prompts/ and not in INVENTORY" for key in sorted(there - {*INVENTORY})] == []
    assert [f"`{key}` is in INVENTORY and not in prompts/" for key in sorted({*INVENTORY} - there)] == []
    assert len(set(INVENTORY)) == len(INVENTORY)


def test_every_prompt_is_said_somewhere() -> None:
    sources = [path for path in (DATA / "mcp_server").rglob("*.py") if path.name != "prompt_checks.py"]
    nodes = [node for path in sources for node in ast.walk(ast.parse(path.read_text()))]
    named = {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert [f"nothing says `{key}`" for key in INVENTORY if key not in named and key not in NOT_YET_SAID] == []
    assert [key for key in NOT_YET_SAID if key in named] == [], "it is said now: take it out of the list"


def test_the_first_place_counts_and_the_others_stand_in(tmp_path: Path) -> None:
    mine = words(tmp_path, agent__warmup="mine: {{user_input}}\n\n")
    assert mine.render_prompt("agent/warmup", {"user_input": "x"}) == "mine: x"
    assert mine.render_prompt("base/system") == Prompts((SHIPPED,)).render_prompt("base/system")


@pytest.mark.parametrize("empty", ["", " \n\t\n"])
def test_an_empty_file_is_an_error_and_not_a_reason_to_look_further(empty: str, tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=f"is empty in {tmp_path}.*Searched for"):
        words(tmp_path, base__system=empty).render_prompt("base/system")


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "system.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(PromptError, match="cannot be read"):
        words(tmp_path).render_prompt("base/system")
    (tmp_path / "base" / "system.md").write_text("x" * (LARGEST + 1))
    with pytest.raises(PromptError, match="cannot be read"):
        words(tmp_path).render_prompt("base/system")


def test_what_is_missing_names_every_place(tmp_path: Path) -> None:
    with pytest.raises(PromptError) as told:
        words(tmp_path).render_prompt("agent/nothing")
    assert str(tmp_path) in str(told.value) and str(SHIPPED.folder) in str(told.value)


@pytest.mark.parametrize(
    "key",
    [
        *("../secret", "agent/../../secret", "/etc/passwd", "agent//warmup", "agent/", "", ".", "Agent/warmup", "a\0b"),
        *("agent/warmup.md", "~/x", "agent\\warmup", "a/" * 5 + "a", "x" * 41, "agent/warmup\n"),
    ],
)
def test_a_key_cannot_leave_the_folder(key: str, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("canary")
    with pytest.raises(PromptError, match="is not the key of a prompt"):
        words(tmp_path / "inner").render_prompt(key)


@given(st.text(max_size=30))
def test_whatever_is_asked_for_is_words_of_ours_or_refused(key: str) -> None:
    shipped = Prompts((SHIPPED,))
    if key in INVENTORY:
        return
    with pytest.raises(PromptError):
        shipped.render_prompt(key)


def test_links_are_passed_over(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "system.md").write_text("canary")
    place = tmp_path / "place"
    place.mkdir()
    (place / "base").symlink_to(outside)
    (place / "agent").mkdir()
    (place / "agent" / "warmup.md").symlink_to(outside / "system.md")
    os.mkfifo(place / "agent" / "micro_step.md")
    found = Prompts((PromptFolder("mine", place), SHIPPED))
    assert "canary" not in found.render_prompt("base/system") + found.render_prompt("agent/warmup", {"user_input": "x"})
    with pytest.raises(PromptError, match="cannot be read"):
        found.render_prompt("agent/micro_step", {"last_step_outcome": "x"})


def test_exactly_four_variables() -> None:
    assert VARIABLES == ("project_root", "user_input", "tool_summary", "last_step_outcome")


@pytest.mark.parametrize("hole", ["{{root}}", "{{ user_input }}", "{{}}", "{{USER_INPUT}}", "{{user_input.x}}"])
def test_an_unknown_variable_is_an_error(hole: str, tmp_path: Path) -> None:
    values: dict[str, str] = dict.fromkeys(VARIABLES, "x")
    with pytest.raises(PromptError, match=r"the variables are project_root, .*Searched for"):
        words(tmp_path, base__system=f"a {hole} b").render_prompt("base/system", values)


@pytest.mark.parametrize("values", [{}, {"user_input": ""}, {"user_input": "  \n"}, {"tool_summary": "x"}])
def test_a_missing_or_empty_value_is_an_error(values: dict[str, str]) -> None:
    with pytest.raises(PromptError, match=r"needs a value for `user_input`.*Searched for"):
        Prompts((SHIPPED,)).render_prompt("agent/warmup", values)


@given(
    st.lists(st.sampled_from([*("{{" + name + "}}" for name in VARIABLES), "\\1", "{", "}}", "$x", "é"]), max_size=8)
)
def test_a_value_is_never_read_as_a_variable(pieces: list[str]) -> None:
    """One pass: whatever a value says comes out as it went in."""
    value = "x" + "".join(pieces)
    said = Prompts((SHIPPED,)).render_prompt("agent/warmup", {"user_input": value, "tool_summary": "never"})
    assert value in said
    assert "never" not in said
