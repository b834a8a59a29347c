"""Do another server's definitions become tools like our own, and does a bad one harm no other?"""

from typing import Any

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.tools import Effect, Tool
from mcp_server.model.upstreams import Mount, ResultTrim, StdioTarget, ToolShape
from mcp_server.policy.arguments import add_fixed_arguments, build_argument_check
from mcp_server.policy.upstream_tools import SetAside, ToolBuilder, build_run

SCHEMA = {
    "type": "object",
    "properties": {"owner": {"type": "string"}, "limit": {"type": "integer"}, "raw": {"type": "boolean"}},
    "required": ["owner"],
}


def mount(**more: Any) -> Mount:
    return Mount("my-server", "myserver", StdioTarget(("x",)), **more)


def build(
    *definitions: dict[str, Any], approved: bool = False, fault: str | None = None, **more: Any
) -> tuple[dict[str, Tool], tuple[SetAside, ...]]:
    builder = ToolBuilder(build_run, lambda _tool: fault, frozenset({"Read", "git_status"}))
    tools, aside = builder.build_tools(mount(**more), definitions, approved)
    return {tool.name: tool for tool in tools}, aside


def definition(name: str = "search", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Finds things.", "inputSchema": SCHEMA, **more}


def one(approved: bool = False, shape: ToolShape | None = None, **more: Any) -> Tool:
    (tool,) = build(definition(**more), approved=approved, tools={"search": shape} if shape else {})[0].values()
    return tool


def test_a_tool_has_what_its_server_says() -> None:
    tool = one(title="Search", icons=[{"src": "data:,"}], _meta={"x": 1}, outputSchema={"type": "object"})
    assert (tool.name, tool.written, tool.title) == ("myserver_search", "my-server:search", "Search")
    assert tool.description == "Finds things."
    assert tool.arguments == SCHEMA and tool.result == {"type": "object"}
    assert tool.entry == {"icons": [{"src": "data:,"}], "_meta": {"x": 1}}


EFFECTS: list[tuple[dict[str, Any], Effect, Profile, bool]] = [
    ({}, Effect.REMOTE_WRITE, Profile.TRUSTED, False),
    ({"title": "Only a title"}, Effect.REMOTE_WRITE, Profile.TRUSTED, False),
    ({"readOnlyHint": True}, Effect.READ_REMOTE, Profile.RESTRICTED, False),
    ({"readOnlyHint": True, "openWorldHint": False}, Effect.READ_LOCAL, Profile.RESTRICTED, False),
    ({"readOnlyHint": True, "destructiveHint": True}, Effect.READ_REMOTE, Profile.RESTRICTED, False),
    ({"openWorldHint": False}, Effect.WRITE_LOCAL, Profile.NORMAL, True),
    ({"openWorldHint": False, "destructiveHint": False}, Effect.WRITE_LOCAL, Profile.NORMAL, False),
    ({"destructiveHint": True}, Effect.REMOTE_WRITE, Profile.TRUSTED, True),
    ({"readOnlyHint": "yes"}, Effect.REMOTE_WRITE, Profile.TRUSTED, False),
]


@pytest.mark.parametrize(("annotations", "effect", "profile", "asks"), EFFECTS)
def test_approved_annotations_choose_the_effect(
    annotations: dict[str, Any], effect: Effect, profile: Profile, asks: bool
) -> None:
    tool = one(approved=True, annotations=annotations)
    assert (tool.effect, tool.profile) == (effect, profile)
    demand = tool.get_demand({})
    assert (demand.effect, demand.profile, bool(demand.confirm)) == (effect, profile, asks)
    assert not asks or (demand.waivable and demand.asked_below is Profile.TRUSTED)


@pytest.mark.parametrize("annotations", [case[0] for case in EFFECTS])
def test_annotations_count_for_nothing_until_they_are_approved(annotations: dict[str, Any]) -> None:
    tool = one(annotations=annotations)
    assert (tool.effect, tool.profile) == (Effect.REMOTE_WRITE, Profile.TRUSTED)
    assert not tool.hints.read_only and "annotations" not in tool.entry


def test_what_the_operator_says_counts_more_than_annotations() -> None:
    shape = ToolShape(effect=Effect.DESTROY_LOCAL, profile=Profile.NORMAL)
    tool = one(approved=True, shape=shape, annotations={"readOnlyHint": True})
    assert (tool.effect, tool.profile, tool.hints.read_only) == (Effect.DESTROY_LOCAL, Profile.NORMAL, False)


def test_a_shaped_tool_hides_and_fixes_arguments() -> None:
    shape = ToolShape(name="find", description="Mine.", hide=frozenset({"raw"}), fix={"owner": "me"}, seconds=9)
    tool = one(shape=shape)
    assert (tool.name, tool.written, tool.description, tool.timeout) == (
        "myserver_find",
        "my-server:search",
        "Mine.",
        9,
    )
    assert set(tool.offered["properties"]) == {"limit"} and "required" not in tool.offered
    # Rules see the fixed argument.
    assert set(tool.arguments["properties"]) == {"owner", "limit"}
    meant, unfit = (
        add_fixed_arguments(lambda _, given: given, {tool.name: tool}),
        build_argument_check({tool.name: tool}),
    )
    assert meant(tool.name, {"limit": 1}) == {"owner": "me", "limit": 1}
    assert unfit(tool.name, meant(tool.name, {"limit": 1})) is None
    for given in ({"owner": "you"}, {"raw": True}, {"owner": ["me"]}):
        assert "cannot be given here" in str(unfit(tool.name, meant(tool.name, given)))


def test_one_and_true_are_not_the_same_fixed_value() -> None:
    tool = one(shape=ToolShape(fix={"limit": 1}))
    unfit = build_argument_check({tool.name: tool})
    assert "cannot be given" in str(unfit(tool.name, {"owner": "a", "limit": True}))


def test_a_secret_argument_is_not_copied_into_a_header() -> None:
    properties = {name: {"type": "string", "x-mcp-header": "X"} for name in ("region", "api_key", "owner")}
    schema = {"type": "object", "properties": properties}
    shape = ToolShape(fix={"owner": "me"})
    shown = one(shape=shape, inputSchema=schema).offered["properties"]
    assert shown == {"region": {"type": "string", "x-mcp-header": "X"}, "api_key": {"type": "string"}}


ASIDE: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"name": ""}, {}, "it has no name"),
    ({"name": 5}, {}, "it has no name"),
    ({"name": "x" * 10_000}, {}, "its name has 10,000 characters"),
    ({"name": "a\x1b[31m"}, {}, "invisible characters"),
    ({"name": "a\u202eb"}, {}, "invisible characters"),
    ({"inputSchema": None}, {}, "schema of its arguments"),
    ({"outputSchema": {"type": "string"}}, {}, "schema of its result"),
    ({"execution": {"taskSupport": "required"}}, {}, "as a task"),
    ({"_meta": {"x": "y" * 60_000}}, {}, "too large"),
    ({}, {"tools": {"search": ToolShape(hide=frozenset({"nope"}))}}, "which it does not have"),
    ({}, {"tools": {"search": ToolShape(hide=frozenset({"owner"}))}}, "which it requires"),
    ({}, {"tools": {"search": ToolShape(fix={"limit": "many"})}}, "does not fit its schema"),
    ({"name": "Read"}, {"prefixed": False}, "menugate itself has a tool of that name"),
]


@pytest.mark.parametrize(("changes", "more", "says"), ASIDE)
def test_a_bad_tool_is_set_aside_beside_a_good_one(changes: dict[str, Any], more: dict[str, Any], says: str) -> None:
    tools, aside = build(definition() | changes, definition("good"), **more)
    assert [tool.written for tool in tools.values()] == ["my-server:good"]
    assert len(aside) == 1 and says in aside[0].reason


def test_a_tool_that_no_client_could_read_is_set_aside() -> None:
    assert build(definition(), fault="not in this revision") == (
        {},
        (SetAside("my-server", "search", "not in this revision"),),
    )


def test_of_two_tools_with_one_name_the_first_counts() -> None:
    tools, aside = build(definition(description="First."), definition(description="Second."))
    assert [tool.description for tool in tools.values()] == ["First."]
    assert "twice" in aside[0].reason


def test_names_stay_as_they_are_without_a_prefix() -> None:
    tools, _ = build(definition("getSum"), definition("a.b-c"), definition("two words"), prefixed=False)
    assert list(tools)[:2] == ["getSum", "a.b-c"] and list(tools)[2].startswith("myserver_two_words_")


def test_a_trimmed_result_loses_its_schema() -> None:
    tools, _ = build(definition(outputSchema={"type": "object"}), result=ResultTrim(drop=("a",), max_chars=900))
    assert tools["myserver_search"].result is None and tools["myserver_search"].max_result_chars == 900


def test_texts_are_cut_and_cleaned() -> None:
    tool = one(title="a\u200bb", description="x" * 5_000 + "\x1b[31m")
    assert tool.title == "ab" and len(tool.description.encode()) <= 1024
    assert one(description=None).description


def test_a_tool_is_never_taken_for_the_resources_or_prompts_of_its_server() -> None:
    tools, aside = build(definition("resource"), definition("prompt"))
    assert sorted(tools) == ["myserver_prompt", "myserver_resource"] and not aside
    written = {tool.written for tool in tools.values()}
    assert not written & {"my-server:resource", "my-server:prompt"}
    taken = str(tools["myserver_resource"].written).partition(":")[2]
    tools, aside = build(definition("resource"), definition(taken))
    assert list(tools) == ["myserver_resource"] and "rules could not tell it" in aside[0].reason
