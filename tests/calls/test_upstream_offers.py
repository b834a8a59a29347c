"""May a call read only the resource that was decided about, and only one that its server offers or has named?"""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mcp_server.calls.upstream_offers import MAX_KEPT_LINKS, KnownLinks, relay_prompt, relay_resource
from mcp_server.calls.upstreams import GrantedUpstreams
from mcp_server.model.context import Context
from mcp_server.model.results import Code, Refusal, Relayed
from mcp_server.model.upstreams import MountBinding, UpstreamCaller
from tests.policy.test_upstream_offers import CATALOGUE, TOOL, build_policy

pytestmark = pytest.mark.anyio
TOOLS = build_policy().tools
READ = TOOLS["notes:resource"]
BINDING = MountBinding("digest", "notes")


class Reached:
    async def read_resource(self, server: str, uri: str, caller: object) -> dict[str, Any]:
        return {"contents": [{"uri": uri, "text": "there"}]}

    async def get_prompt(self, server: str, prompt: str, arguments: object, caller: object) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": prompt}}]}


def granted(tool: Any, arguments: dict[str, Any], links: KnownLinks | None = None) -> GrantedUpstreams:
    call, caller = SimpleNamespace(tool=tool, arguments=arguments), UpstreamCaller("me", "s", cast(Any, None))
    return GrantedUpstreams(cast(Any, Reached()), cast(Any, call), caller, links or KnownLinks())


@pytest.mark.parametrize(
    ("tool", "server", "decided", "uri", "code"),
    [
        (READ, "notes", "memo://a", "memo://a", None),
        (READ, "notes", "memo://a", "memo://b", Code.NOT_GRANTED),
        (READ, "other", "memo://a", "memo://a", Code.NOT_GRANTED),
        (TOOL, "notes", "memo://a", "memo://a", Code.NOT_GRANTED),
        (TOOLS["notes:prompt"], "notes", "memo://a", "memo://a", Code.NOT_GRANTED),
        (READ, "notes", "memo://unheard", "memo://unheard", Code.NOT_FOUND),
    ],
)
async def test_nothing_else_is_read(tool: Any, server: str, decided: str, uri: str, code: Code | None) -> None:
    port = granted(tool, {"uri": decided})
    if code is None:
        assert (await port.read_resource(server, uri))["contents"]
        return
    with pytest.raises(Refusal) as refused:
        await port.read_resource(server, uri)
    assert refused.value.problem.code is code


async def test_a_link_opens_its_own_address_to_its_own_principal() -> None:
    links = KnownLinks()
    granted(READ, {}, links).note_links("notes", ["memo://linked"])
    assert await granted(READ, {"uri": "memo://linked"}, links).read_resource("notes", "memo://linked")
    assert not links.has("you", "notes", "memo://linked") and not links.has("me", "other", "memo://linked")


async def test_a_link_does_not_open_what_a_template_describes_that_is_not_approved() -> None:
    more = ({"uriTemplate": "memo://nights/{night}"}, {"uriTemplate": "memo://{+anything}"})
    links, tools = KnownLinks(), build_policy(now=replace(CATALOGUE, templates=(*CATALOGUE.templates, more[0]))).tools
    for uri, opens in (("memo://nights/one", False), ("memo://linked", True), ("memo://days/one", True)):
        port = granted(tools["notes:resource"], {"uri": uri}, links)
        port.note_links("notes", [uri])
        if opens:
            assert await port.read_resource("notes", uri)
            continue
        with pytest.raises(Refusal):
            await port.read_resource("notes", uri)
    wide = build_policy(now=replace(CATALOGUE, templates=(*CATALOGUE.templates, more[1]))).tools["notes:resource"]
    assert await granted(wide, {"uri": "memo://a"}).read_resource("notes", "memo://a"), "it is listed and approved"


def test_links_are_forgotten_at_some_point() -> None:
    links = KnownLinks()
    links.add("me", "s", [f"memo://{number}" for number in range(MAX_KEPT_LINKS + 1)])
    assert not links.has("me", "s", "memo://0") and links.has("me", "s", "memo://1")
    for number in range(100):
        links.add(f"p{number}", "s", ["memo://a"])
    assert not links.has("me", "s", "memo://1")


@pytest.mark.parametrize("arguments", [{"name": "plan"}, {"name": "plan", "arguments": {"a": "b"}}])
async def test_only_the_prompt_that_was_decided_about_is_got(arguments: dict[str, Any]) -> None:
    port = granted(TOOLS["notes:prompt"], arguments)
    assert await port.get_prompt("notes", "plan", arguments.get("arguments", {}))
    with pytest.raises(Refusal):
        await port.get_prompt("notes", "other", {})
    with pytest.raises(Refusal):
        await port.get_prompt("notes", "plan", {"a": "c"})


async def test_contents_and_messages_keep_all_but_their_addresses() -> None:
    context = cast(Context, SimpleNamespace(upstreams=granted(READ, {"uri": "memo://a"})))
    read = await relay_resource("notes", BINDING, context, {"uri": "memo://a"})
    assert isinstance(read, Relayed)
    assert read.blocks == ({"type": "resource", "resource": {"uri": "memo://notes/a", "text": "there"}},)
    context = cast(Context, SimpleNamespace(upstreams=granted(TOOLS["notes:prompt"], {"name": "plan"})))
    got = await relay_prompt("notes", BINDING, context, {"name": "plan"})
    assert isinstance(got, Relayed) and got.text == "plan"
    assert got.extra == {"menugate/prompt": {"roles": ["user"], "description": None}}


@pytest.mark.parametrize("result", [{}, {"contents": "x"}, {"contents": [1]}])
async def test_what_is_no_result_is_a_fault_of_the_server(result: dict[str, Any]) -> None:
    class Broken:
        async def read_resource(self, *_: Any) -> dict[str, Any]:
            return result

    with pytest.raises(Refusal, match="not MCP"):
        await relay_resource("notes", BINDING, cast(Context, SimpleNamespace(upstreams=Broken())), {"uri": "memo://a"})
