"""Is every registered tool what the policy table says, and is every row a tool, or named as coming?"""

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.config.load import Configuration, load_configuration
from mcp_server.model.menus import CARRIERS, META_TOOLS
from mcp_server.model.posture import Posture, Profile, Stage
from mcp_server.model.sessions import Session
from mcp_server.model.tools import ACTING, HINTS, READING, REVIEWING, WARMUP, Confirmation, Effect, Tool
from mcp_server.policy.decision import list_visible_tools
from mcp_server.settings import read_settings
from tests.yaml_text import load_yaml
from tools.catalog import CATALOG

TABLES = Path(__file__).parents[1] / "tables"
TABLE = load_yaml((TABLES / "policy.yaml").read_text())
ROWS: dict[str, dict[str, Any]] = TABLE["tools"]
COMING: list[str] = TABLE["coming"]
PROFILES = dict(zip("RNTU", Profile, strict=True))
STAGES = {"W": WARMUP, "A": ACTING, "Q": REVIEWING, "D": frozenset({Stage.DELIVERY_CHECK})}
REGISTERED = {tool.name: tool for tool in CATALOG}
EVERYWHERE = (*META_TOOLS, *CARRIERS)
OWN_ROWS = {name: row for name, row in ROWS.items() if name not in CARRIERS}
"""A carrier has no effect but that of the tool it carries, which is decided by its own row."""
CHANGING = frozenset(Effect) - READING


@cache
def house() -> Configuration:
    found = load_configuration(read_settings({"workspace": str(TABLES)}, {}), bare=True)
    assert isinstance(found, Configuration)
    return found


def row_of(tool: Tool) -> dict[str, Any]:
    """The tool as the table would write it."""
    hints = tool.hints
    return {
        "least": tool.profile[0].upper(),
        "hints": "".join(
            str(int(one)) for one in (hints.read_only, hints.destructive, hints.idempotent, hints.open_world)
        ),
        "effect": str(tool.effect),
        "stages": "".join(letter for letter, stages in STAGES.items() if stages & tool.stages),
        "asks": tool.confirmation,
    }


def confirmation_of(row: dict[str, Any]) -> Confirmation:
    match row.get("asks"):
        case None:
            return Confirmation.NEVER
        case "always":
            return Confirmation.ALWAYS
        case _:
            return Confirmation.BY_ARGUMENTS


@pytest.mark.parametrize("name", [name for name in REGISTERED if name in ROWS])
def test_a_registered_tool_equals_its_row(name: str) -> None:
    row = ROWS[name] | {"asks": confirmation_of(ROWS[name])}
    assert row_of(REGISTERED[name]) == {key: row[key] for key in ("least", "hints", "effect", "stages", "asks")}


@pytest.mark.parametrize("tool", REGISTERED.values(), ids=lambda tool: tool.name)
def test_hints_that_do_not_follow_from_the_effect_have_a_reason(tool: Tool) -> None:
    differs, reason = tool.hints != HINTS[tool.effect], tool.hints.because
    assert differs == bool(reason), f"{tool.name}: give the hints of {tool.effect}, or say why others hold"


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if name in REGISTERED and "asks" in row])
def test_the_person_is_asked_where_the_table_says_so(name: str) -> None:
    tool, row = REGISTERED[name], ROWS[name]
    arguments = tool_arguments(tool, "src/a.py") if row["asks"] == "always" else row["asks"]
    assert tool.get_demand(arguments).confirm, f"{name} does not say why the person is asked"
    assert row["asks"] == "always" or house().policy.unfit(name, arguments) is None


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if name in REGISTERED and "asks" not in row])
@pytest.mark.parametrize("text", ["src/a.py", ".env", ".git/config", "rm -rf /"])
def test_the_person_is_never_asked_where_the_table_does_not_say_so(name: str, text: str) -> None:
    tool = REGISTERED[name]
    assert tool.get_demand(tool_arguments(tool, text)).confirm is None, f"{name} has no `asks` in its row"


def tool_arguments(tool: Tool, text: str) -> dict[str, Any]:
    """Arguments with this text wherever the tool takes one."""
    schemas = tool.arguments["properties"].items()
    return {name: text for name, schema in schemas if schema.get("type") == "string" and "enum" not in schema}


@pytest.mark.parametrize("name", [name for name in REGISTERED if "up_to" in ROWS.get(name, {})])
def test_arguments_make_a_difference_where_the_table_says_so(name: str) -> None:
    """Where what some arguments ask for is judged elsewhere, the note says where."""
    row, tool = ROWS[name], REGISTERED[name]
    assert tool.demand is not None or "by itself" in row["note"], f"{name} has no demand of its own"


def test_every_registered_tool_has_a_row() -> None:
    missing = [f"`{name}` has no row in tests/tables/policy.yaml" for name in REGISTERED if name not in ROWS]
    assert missing == []


def test_every_row_is_registered_or_coming_and_never_both() -> None:
    missing = [name for name in ROWS if name not in REGISTERED]
    stale = sorted(set(COMING) - set(missing))
    assert stale == [], f"registered now: take {', '.join(stale)} out of `coming` in tests/tables/policy.yaml"
    assert sorted(set(missing) - set(COMING)) == [], "a row of the table is neither registered nor coming"


def test_a_registered_tool_is_in_the_modes_of_its_row() -> None:
    menus = house().policy.menus
    known = {mode.name for mode in menus}
    for name in REGISTERED:
        if name in ROWS:
            listed = {mode.name for mode in menus.find_modes_with(name)}
            assert listed == set(ROWS[name]["modes"]) & known, f"{name} is not in the modes of its row"


def test_the_cases_of_decisions_speak_about_the_same_tools() -> None:
    """Two tables that differ would each be right about something else."""
    cases = load_yaml((TABLES / "tools.yaml").read_text())["tools"]
    for name, case in cases.items():
        assert {key: case[key] for key in ("hints", "stages", "modes")} == {
            key: ROWS[name][key] for key in ("hints", "stages", "modes")
        }, name


# What must be true of the table whatever is in it.


def test_what_only_reads_has_no_effect_outside() -> None:
    reading = READING | {Effect.EXEC}
    assert [
        name for name, row in OWN_ROWS.items() if row["hints"][0] == "1" and Effect(row["effect"]) not in reading
    ] == []


def test_nothing_in_review_writes_outside_the_state() -> None:
    writing = {Effect.WRITE_LOCAL, Effect.DESTROY_LOCAL, Effect.VCS_LOCAL, Effect.REMOTE_WRITE}
    writing |= {Effect.PRODUCTION_MUTATION, Effect.DELEGATE}
    assert [name for name, row in OWN_ROWS.items() if "Q" in row["stages"] and Effect(row["effect"]) in writing] == []


def test_nothing_but_the_meta_tools_runs_while_the_answer_is_delivered() -> None:
    assert [name for name, row in OWN_ROWS.items() if "D" in row["stages"] and name not in EVERYWHERE] == []


def test_the_restricted_profile_starts_nothing() -> None:
    assert [name for name, row in OWN_ROWS.items() if row["least"] == "R" and Effect(row["effect"]) in CHANGING] == []


def test_what_destroys_or_reaches_production_says_so_and_is_trusted_with_it() -> None:
    for name, row in OWN_ROWS.items():
        if Effect(row["effect"]) in (Effect.DESTROY_LOCAL, Effect.PRODUCTION_MUTATION):
            assert row["hints"][1] == "1", name
            assert PROFILES[row["least"]].covers(Profile.TRUSTED), name


def test_every_row_is_in_a_mode_or_is_a_meta_tool() -> None:
    assert [name for name, row in OWN_ROWS.items() if bool(row["modes"]) == (name in EVERYWHERE)] == []


def test_each_profile_sees_what_the_one_below_it_sees_and_no_less() -> None:
    """R in N in T in U, of the table and of what is really listed, in every mode and flat."""
    sets = [{name for name, row in OWN_ROWS.items() if given.covers(PROFILES[row["least"]])} for given in Profile]
    assert all(lower <= higher for lower, higher in pairwise(sets))
    assert sets[0] < sets[1] < sets[2]
    policy = house().policy
    for session in [Session("s", "p", flat=True), *(Session("s", "p", mode=mode.name) for mode in policy.menus)]:
        seen = [set(list_visible_tools(session, replace(Posture(), profile=given), policy)) for given in Profile]
        assert all(lower <= higher for lower, higher in pairwise(seen)), session.mode
