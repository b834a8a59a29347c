"""Does the check of menus against registry see every direction in which the two can come apart?"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.faults import FaultCollector
from mcp_server.config.menu_coverage import is_covered, validate_tool_coverage
from mcp_server.config.menus import load_mode_drafts
from mcp_server.model.menus import CARRIERS, META_TOOLS
from mcp_server.model.tools import Effect, Hints, Tool
from tests.config.samples import SHIPPED, made, mode_text, opened, run, shipped_drafts, shipped_tools

READS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)


def found(tools: dict[str, Tool]) -> list[str]:
    return [str(fault) for fault in validate_tool_coverage(tools, shipped_drafts())]


def with_tool(name: str, **changes: Any) -> list[str]:
    """What is said when one more tool is registered that the menus do not know."""
    return found(shipped_tools() | {name: made(name, **changes)})


def test_the_shipped_menus_and_their_tools_fit() -> None:
    meta = {name: made(name, meta=True) for name in META_TOOLS}
    carriers = {name: made(name) for name in CARRIERS}
    assert found(shipped_tools() | meta | carriers) == []


def test_a_tool_on_no_menu_is_found_with_its_place() -> None:
    (fault,) = validate_tool_coverage(shipped_tools() | {"lonely": made("lonely")}, shipped_drafts())
    assert fault.key == "lonely"
    assert fault.message == "the tool `lonely` is on no menu; add it to the `tools` of at least one mode"
    assert (Path(fault.file).name, fault.line) == ("samples.py", run.__code__.co_firstlineno)


def test_a_menu_entry_without_a_tool_is_found_with_its_place() -> None:
    tools = shipped_tools()
    tools["greb"] = replace(tools.pop("grep"), name="greb")
    faults = validate_tool_coverage(tools, shipped_drafts())
    holding = sorted(opened().menus.find_modes_with("grep"), key=lambda mode: mode.name)
    assert [(Path(fault.file).name, fault.key, fault.nearest) for fault in faults] == [
        *((f"{mode.name}.yaml", f"tools[{mode.tools.index('grep')}]", "greb") for mode in holding),
        ("samples.py", "greb", "grep"),
    ]
    for fault in faults[:-1]:
        assert Path(fault.file).read_text().splitlines()[fault.line - 1].strip() == "- grep"


def test_a_tool_in_a_file_with_a_fault_is_not_said_to_be_on_no_menu(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(mode_text(tools="[lonely, 5]"))
    drafts = load_mode_drafts([SHIPPED, tmp_path], FaultCollector())
    assert not drafts.complete
    assert validate_tool_coverage(shipped_tools() | {"lonely": made("lonely")}, drafts) == []


def test_a_fault_beside_the_tools_leaves_the_check_whole(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(mode_text(goal="endless"))
    assert load_mode_drafts([SHIPPED, tmp_path], FaultCollector()).complete


@pytest.mark.parametrize(
    "lost", ["tool: [grep]\n", "extends: swe\nad: [grep]\n", "name: swe\n", "extends: gone\nadd: [x]\n"]
)
def test_a_fault_that_may_have_cost_tools_is_known_as_one(lost: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(lost)
    assert not load_mode_drafts([SHIPPED, tmp_path], FaultCollector()).complete


def test_a_mode_that_lost_all_its_tools_is_found(tmp_path: Path) -> None:
    swe = opened().menus.by_name.get("swe")
    assert swe is not None
    (tmp_path / "change.yaml").write_text(f"extends: swe\nremove: [{', '.join(swe.tools)}]\n")
    faults = validate_tool_coverage(shipped_tools(), load_mode_drafts([SHIPPED, tmp_path], FaultCollector()))
    assert any("the mode `swe` has no tools" in fault.message for fault in faults)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("with.dot", "hosts cannot use the name"),
        ("with space", "hosts cannot use the name"),
        ("", "hosts cannot use the name"),
        ("x" * 41, "hosts cannot use the name"),
        ("two__underscores", "hosts cannot use the name"),
        ("grün", "hosts cannot use the name"),
        ("GREP", "`GREP` and `grep` are too similar"),
        ("fs-move", "`fs-move` and `fs_move` are too similar"),
        ("fsmove", "`fsmove` and `fs_move` are too similar"),
        ("Think", "`Think` and `think` are too similar"),
        ("menu-call", "`menu-call` and `menu_call` are too similar"),
    ],
)
def test_a_name_that_hosts_break_is_found(name: str, says: str) -> None:
    assert says in "\n".join(with_tool(name))


def test_a_name_at_the_limit_is_fine() -> None:
    assert len(with_tool("x" * 40)) == 1, "it is on no menu, and nothing else"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"description": "x" * 1025}, "1025 bytes; the limit is 1024"),
        ({"description": "ü" * 513}, "1026 bytes; the limit is 1024"),
        ({"description": " "}, "the description is empty"),
        ({"hints": None}, "the four hints are missing"),
        ({"hints": replace(READS, open_world=None)}, "including open_world"),
        ({"hints": replace(READS, destructive=True)}, "contradicts that"),
        ({"effect": Effect.WRITE_LOCAL}, "contradicts that"),
        ({"effect": Effect.DELEGATE}, "contradicts that"),
        ({"arguments": {}}, "the schema of the arguments must have `type: object`"),
        ({"arguments": {"type": ["object"]}}, "the schema of the arguments must have `type: object`"),
        ({"arguments": None}, "the schema of the arguments must have `type: object`"),
        ({"result": {"type": "array"}}, "the schema of the result must have `type: object`"),
        ({"meta": True}, "only menugate's own meta-tools may be `meta`"),
    ],
)
def test_a_definition_that_hosts_break_on_is_found(changes: dict[str, Any], says: str) -> None:
    tools = shipped_tools()
    tools["grep"] = replace(tools["grep"], **changes)
    assert says in "\n".join(found(tools))


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "ü" * 512},
        {"effect": Effect.EXEC},
        {"result": {"type": "object"}},
        {"effect": Effect.WRITE_LOCAL, "hints": replace(READS, read_only=False, destructive=True)},
    ],
)
def test_a_sound_definition_is_left_alone(changes: dict[str, Any]) -> None:
    tools = shipped_tools()
    tools["grep"] = replace(tools["grep"], **changes)
    assert found(tools) == []


def test_a_tool_registered_under_another_name_is_found() -> None:
    tools = shipped_tools() | {"glib": made("glib")}
    tools["glib"] = made("glob")
    assert "`glob` is registered as `glib`" in "\n".join(found(tools))


def test_a_tool_without_source_is_still_found() -> None:
    wrapped: Callable[..., Any] = partial(run)
    assert with_tool("lonely", run=wrapped)[0].startswith("the pack of functools: lonely: the tool `lonely`")


def test_everything_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(mode_text(name="first", title="Data", tools="[gerp, think, grep, Read]"))
    (tmp_path / "b.yaml").write_text(mode_text(name="second", title="Second", triggers="[first, '３']", tools="[Read]"))
    (tmp_path / "c.yaml").write_text("extends: second\nadd: [Read]\n")
    (tmp_path / "d.yaml").write_text("extends: data\nremove: [fs_move]\n")
    tools = shipped_tools() | {"lonely": made("lonely", hints=None), "x__y": made("x__y", description="")}
    told = "\n".join(
        str(fault) for fault in validate_tool_coverage(tools, load_mode_drafts([SHIPPED, tmp_path], FaultCollector()))
    )
    for says in (
        "there is no tool `gerp` (did you mean `grep`?)",
        "`think` is available in every mode; remove it from the menu `first`",
        "`Data` already enters the mode `data`",
        "`first` already enters the mode `first`",
        "`３` is a number",
        "`Read` is already on this menu",
        "the tool `fs_move` is on no menu",
        "the tool `lonely` is on no menu",
        "the four hints are missing",
        "cannot use the name `x__y`",
        "the description is empty",
        "the tool `x__y` is on no menu",
    ):
        assert says in told, told
    assert told.count("\n") == 11, told


def test_the_plain_form_names_what_is_in_no_mode() -> None:
    menus = opened().menus
    assert is_covered({"grep", "Read", *META_TOOLS, *CARRIERS}, menus) == (True, [])
    assert is_covered({"zebra", "grep", "ant"}, menus) == (False, ["ant", "zebra"])
