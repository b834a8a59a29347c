"""Is a call understood that a model wrote differently, and does every example work exactly as it is shown?"""

import json
from typing import Any

import pytest

from mcp_server.calls.carriers import (
    MAX_EXAMPLE_CHARS,
    build_sample_arguments,
    drop_argument,
    find_menu_handle,
    fit_arguments,
    format_example_call,
    normalise_carrier_arguments,
)
from mcp_server.model.policy import Policy
from tests.policy import world
from tools.catalog import CATALOG

READ: dict[str, Any] = {"file_path": "notes.md"}


@pytest.fixture
def policy() -> Policy:
    return world.policy()


def test_every_tools_sample_is_accepted_by_that_tool(policy: Policy) -> None:
    samples = {name: build_sample_arguments(tool.arguments) for name, tool in policy.tools.items()}
    assert {name: sample for name, sample in samples.items() if policy.unfit(name, sample)} == {}


def test_an_example_is_the_whole_call(policy: Policy) -> None:
    carrier, _, call = format_example_call(policy.tools["Read"], READ, mode="swe").partition(" ")
    assert carrier == "menu_read"
    assert json.loads(call) == {"tool": "Read", "arguments": READ, "mode": "swe"}
    assert format_example_call(policy.tools["bash"]).startswith("menu_call ")


def test_what_is_too_long_to_repeat_is_left_to_the_caller(policy: Policy) -> None:
    shown = format_example_call(policy.tools["Read"], {"file_path": "x" * MAX_EXAMPLE_CHARS})
    assert "xxx" not in shown
    assert len(shown) < MAX_EXAMPLE_CHARS


def test_arguments_that_fit_are_kept_and_missing_ones_filled_in(policy: Policy) -> None:
    tool = policy.tools["Read"]
    assert fit_arguments(tool, READ, policy) == READ
    assert fit_arguments(tool, {**READ, "no_such_argument": 1}, policy) == READ
    assert policy.unfit("Read", fit_arguments(tool, {}, policy)) is None


@pytest.mark.parametrize(
    "given",
    [
        {"tool": "Read", "arguments": READ, "menu": "menu_x"},
        {"tool": "Read", "arguments": {**READ, "menu": "menu_x"}},
        {"tool": "Read", "arguments": json.dumps({**READ, "menu": "menu_x"})},
        {"tool": "Read", "arguments": {"tool": "Read", "arguments": READ}, "menu": "menu_x"},
    ],
)
def test_the_same_call_however_it_is_written(given: dict[str, Any], policy: Policy) -> None:
    call = normalise_carrier_arguments(given, policy)
    assert call == {"tool": "Read", "arguments": READ, "menu": "menu_x"}


def test_a_mode_among_the_arguments_belongs_to_the_carrier(policy: Policy) -> None:
    call = normalise_carrier_arguments({"tool": "Read", "arguments": {**READ, "mode": "swe"}}, policy)
    assert call == {"tool": "Read", "arguments": READ, "mode": "swe"}


@pytest.mark.parametrize(
    "given",
    [
        {"tool": "Read", "arguments": {**READ, "menu": "menu_a"}, "menu": "menu_b"},
        {"tool": "Read", "arguments": '{"file_path": "a", "file_path": "b"}'},
        {"tool": "Read", "arguments": "not JSON"},
        {"tool": "no_such_tool", "arguments": {"menu": "menu_x"}},
        {"tool": "menu_enter", "arguments": {"mode": "swe"}},
    ],
)
def test_what_could_mean_two_things_is_left_as_it_is(given: dict[str, Any], policy: Policy) -> None:
    assert normalise_carrier_arguments(given, policy) == given


def test_only_what_begins_like_one_is_a_handle(policy: Policy) -> None:
    read, enter = policy.tools["Read"], next(tool for tool in CATALOG if tool.name == "menu_enter")
    assert find_menu_handle(read, {"menu": "menu_x"}) == "menu_x"
    assert find_menu_handle(read, {"menu": "today's"}) is None
    assert find_menu_handle(read, {}) is None
    assert find_menu_handle(enter, {"menu": "anything"}) == "anything"
    assert drop_argument({"menu": "menu_x", "a": 1}, "menu") == {"a": 1}
