"""Do the file tools say about themselves what they do?"""

import pytest

from mcp_server.model.tools import READING, Effect, Tool
from tests.tools.workbench import TOOLS

NAMES_ONLY = ("fs_list_directory", "fs_file_info")
"""They show what there is, and nothing of what is in it."""


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_descriptions_are_short_and_every_argument_has_one(tool: Tool) -> None:
    assert len(tool.description.encode()) <= 1024
    assert tool.hints.read_only == (tool.effect in READING)
    for schema in tool.arguments["properties"].values():
        assert schema["description"]
    assert tool.subject
    assert tool.subject[0] in tool.arguments["properties"]


SAFE, OBEYED, SECRET = "src/a.py", ".git/config", ".env"


def arguments(tool: Tool, path: str) -> dict[str, str]:
    """Arguments with this path wherever a path goes."""
    required = tool.arguments.get("required", ())
    return {name: path if name in ("path", "file_path", "source", "destination") else "x" for name in required}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_the_person_is_asked_where_it_matters(tool: Tool) -> None:
    changes = tool.effect not in READING
    shows = tool.name not in NAMES_ONLY
    always = tool.effect is Effect.DESTROY_LOCAL
    assert (tool.get_demand(arguments(tool, SAFE)).confirm is not None) == always
    assert (tool.get_demand(arguments(tool, OBEYED)).confirm is not None) == changes
    assert (tool.get_demand(arguments(tool, SECRET)).confirm is not None) == (changes or shows)
    for path in (SAFE, OBEYED, SECRET):
        demand = tool.get_demand(arguments(tool, path))
        assert (demand.effect, demand.profile) == (tool.effect, tool.profile)


def test_deleting_for_good_takes_more() -> None:
    demand = TOOLS["fs_delete"].get_demand({"path": "a", "permanent": True})
    assert (demand.effect, demand.profile) == (Effect.DESTROY_LOCAL, "unrestricted")
    assert demand.confirm
    assert "for good" in demand.confirm


def test_either_end_of_a_move_may_be_the_one_to_ask_about() -> None:
    for ends in ({"source": "a", "destination": ".git/hooks/x"}, {"source": ".env", "destination": "plain"}):
        assert TOOLS["fs_move"].get_demand(ends).confirm
