"""Who can change what the person chose? A search of the code: the person's doors, and nobody else."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mcp_server.calls.context import ToolContext
from mcp_server.model.parts import list_parts
from mcp_server.model.posture import AXES
from mcp_server.state import posture_changes
from tests.architecture.test_rooms import HOUSE, modules, parsed

DOORS = {"mcp_server/calls/posture.py", "mcp_server/calls/terminal.py"}
"""The places from which a choice is written: for a running server, and for a command that the person typed."""
AT_THE_DOORS = {
    "mcp_server/calls/slash.py",
    "mcp_server/calls/posture_raise.py",
    "mcp_server/calls/run_commands.py",
    "mcp_server/calls/health.py",
    "mcp_server/cli/posture.py",
    "mcp_server/cli/steer.py",
}
"""The slash commands, the health gate, the terminal."""
KEEPERS = {
    "mcp_server/state/posture.py",
    "mcp_server/state/posture_changes.py",
    "mcp_server/state/__init__.py",
    # What another account chose, which narrows and does no more.
    "mcp_server/state/foreign.py",
}
BUILDERS = {"mcp_server/compose.py", "mcp_server/app.py", "mcp_server/health.py"}
NARROWING = {
    "mcp_server/model/posture.py": "below the ceiling, or the least there is",
    "mcp_server/config/limits.py": "where the operator starts everybody",
    "mcp_server/policy/posture_width.py": "the narrower of two, to weigh a wish by",
}
"""Where a posture is made that nobody chose, and why that raises nothing."""
STATE = {"posture_changes", "state_posture_changes"}
"""As what the state's module about changes of the posture is imported."""
ASKING = {
    "mcp_server/cli/explain.py": "what if; nothing is written",
    "mcp_server/cli/servers.py": "what a server was started with; nothing is written",
}


OPENING = (
    "PostureChanges",
    "build_posture_changes",
    "open_posture_changes",
    "HealthResponse",
    "build_health_response",
    "request_posture_change",
    "confirm_posture_change",
    "drop_posture_changes",
)
"""What leads to the doors."""


@cache
def every() -> tuple[tuple[str, ast.AST], ...]:
    return tuple((str(path.relative_to(HOUSE)), parsed(path)) for path in modules())


def importing(module: str, *names: str) -> set[str]:
    return {
        where
        for where, tree in every()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(module)
        and any(alias.name in names for alias in node.names)
    }


def deeds_done(tree: ast.AST) -> set[str]:
    """Which deeds of the state are named: `posture_changes.drop_changes`."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in STATE
    }


def test_a_choice_is_written_from_the_doors_alone() -> None:
    deeds = {"request_posture_change", "open_request", "confirm_request", "confirm_change", "drop_changes"}
    assert all(hasattr(posture_changes, deed) for deed in deeds)
    assert {where for where, tree in every() if deeds_done(tree) & deeds} == DOORS
    assert importing("mcp_server.state", *deeds) <= KEEPERS
    planted = ast.parse("await store.write(partial(posture_changes.drop_changes, ids=ids))")
    assert list(deeds_done(planted)) == ["drop_changes"]


def test_only_the_keepers_know_how_a_choice_is_kept() -> None:
    sql = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM|REPLACE INTO)\s+posture\b")
    writing = {str(path.relative_to(HOUSE)) for path in modules() if sql.search(path.read_text())}
    assert writing == {"mcp_server/state/posture.py"}


def test_the_doors_are_opened_to_the_person_alone() -> None:
    assert {"compose", "health"} <= {Path(where).stem for where in importing("mcp_server", *OPENING)}
    opening = importing("mcp_server", *OPENING)
    assert opening - BUILDERS <= AT_THE_DOORS | {"mcp_server/cli/doctor.py"}


@pytest.mark.parametrize("name", ["PostureChange", "PostureChoice", "ChangeSource"])
def test_no_tool_and_no_menu_knows_what_a_choice_is(name: str) -> None:
    rooms = ("tools/", "mcp_server/config/", "mcp_server/guards/", "mcp_server/wire/", "mcp_server/upstreams/")
    # Several versions of the operator's file come to less than each of them, and a limit lowers what was chosen.
    knowing = importing("mcp_server.model", name) - {"mcp_server/config/merge.py", "mcp_server/config/limits.py"}
    assert [where for where in knowing if where.startswith(rooms)] == []


def replacing(tree: ast.AST) -> Iterator[int]:
    """The lines on which an axis is put in another's place: `replace(…, profile=…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "replace":
            named = {keyword.arg for keyword in node.keywords}
            # A demand has a profile too, and a wish to reason is no switch.
            if named & set(AXES) or None in named:
                yield node.lineno


def test_an_axis_is_nowhere_replaced_but_to_narrow_or_to_wonder() -> None:
    found = {where for where, tree in every() if any(replacing(tree))}
    assert found == {*NARROWING, *ASKING}


def test_a_planted_change_is_found() -> None:
    for planted in (
        "replace(posture, profile=Profile.TRUSTED)",
        "replace(p, work_mode=m)",
        "replace(p, reasoning=False)",
    ):
        assert list(replacing(ast.parse(planted)))


def test_a_tool_is_given_nothing_that_leads_to_a_door() -> None:
    given = {*list_parts(ToolContext)}
    assert given.isdisjoint({"posture", "postures", "doors", "store", "gate"})
