"""Is the SDK what our wire takes it for? What we touch beneath its public face, and what we answer in its place."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import pytest
from mcp.server.context import CallNext, HandlerResult
from mcp.types import JSONRPCMessage, JSONRPCResponse, ListToolsResult, methods
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_server.app import App
from mcp_server.model.context import Context as ToolContext
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Raw, Refusal
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import EVERY_STAGE, Effect, Hints, Tool
from mcp_server.wire import http as transport
from mcp_server.wire.caller import Context, get_connection
from mcp_server.wire.encoding import encode_message
from mcp_server.wire.listings import EncodedTools
from mcp_server.wire.translate import build_tool_entry, prepare_tool
from tests.clients import within
from tests.clients.clients import MODERN, held, over_sse
from tests.clients.raw import RawClient
from tests.clients.served import PATIENCE

pytestmark = pytest.mark.anyio
PNG = bytes.fromhex("89504e470d0a1a0a")
DATA = {"number": 1, "nested": {"list": [1, "two", None, True, 2.5]}, "letters": "é😀"}
RESULT = {"type": "object", "properties": {"number": {"type": "integer"}}}
ENDINGS: dict[str, Ending] = {
    "text": Done("Hello, wörld 😀\nand a second line"),
    "nothing": Done(""),
    "surrogate": Done("half a character: \ud83d"),
    "structured": Done("one", DATA),
    "structured_alone": Done("", {"number": 1}),
    "picture": Done("look", blocks=(Picture(PNG, "image/png"),)),
    "picture_alone": Done("", blocks=(Picture(PNG, "image/png"),)),
    "raw": Done(
        "",
        blocks=(
            Raw({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            Raw({"type": "resource", "resource": {"uri": "x://y", "mimeType": "text/plain", "text": "z"}}),
        ),
    ),
    "problem": Problem(Code.NOT_FOUND, "there is no `x`.", "Look elsewhere."),
    "problem_with_data": Problem(Code.AMBIGUOUS_MODE, "which?", "", {"candidates": [{"number": 1, "label": "a"}]}),
}


def ending_tool(name: str, ending: Ending) -> Tool:
    async def run(_ctx: ToolContext, _args: Any) -> Ending:
        return ending

    return lab(f"end_{name}", run, RESULT if name.startswith("structured") else None)


def lab(name: str, run: Any, result: dict[str, Any] | None = None, **arguments: Any) -> Tool:
    return Tool(
        name=name,
        title=name,
        description=f"Ends in {name}.",
        arguments={"type": "object", "properties": arguments, "additionalProperties": False},
        profile=Profile.RESTRICTED,
        effect=Effect.NONE,
        hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
        stages=EVERY_STAGE,
        run=run,
        result=result,
    )


async def bursts(_ctx: ToolContext, _args: Any) -> Ending:
    raise RuntimeError("the secret of the house")


async def refuses(_ctx: ToolContext, _args: Any) -> Ending:
    raise Refusal(Problem(Code.PATH_REFUSED, "not there."))


MIRRORED = {"type": "string", "description": "Where", "x-mcp-header": "Region"}
TOOLS = (
    *(ending_tool(name, ending) for name, ending in ENDINGS.items()),
    lab("end_bursting", bursts),
    lab("end_refused", refuses),
    lab("end_mirrored", bursts, region=MIRRORED),
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    folder = tmp_path_factory.mktemp("contract")
    for name in ("work", "home", "menus"):
        (folder / name).mkdir()
    (folder / "work" / "notes.md").write_text("first\n")
    names = "".join(f"  - {tool.name}\n" for tool in TOOLS)
    sentences = "role: You end.\ngoal: An end.\noffers: Ends.\nwhen: to see an end\nremember: It ends.\n"
    head = f"name: ends\ntitle: All Ends\norder: 999\n{sentences}triggers: [ending]\n"
    (folder / "menus" / "ends.yaml").write_text(f"{head}tools:\n{names}")
    pack = Pack("ends", tools=TOOLS, menus=(str(folder / "menus"),))
    async with within.house(folder / "work", folder / "home", pack, listing="flat") as one:
        yield one


def plain(message: JSONRPCMessage) -> Any:
    return json.loads(message.model_dump_json(by_alias=True, exclude_none=True))


# What we answer in the SDK's place.

CALLS: list[tuple[str, dict[str, Any]]] = [
    *((tool.name, {}) for tool in TOOLS),
    ("Read", {"file_path": "notes.md"}),
    ("Read", {"file_path": "missing.md"}),
    ("Read", {"file_path": 5}),
    ("Edit", {}),
    ("nothing_of_the_kind", {}),
    ("menu_list", {}),
    ("menu_enter", {"mode": "source"}),
    ("menu_exit", {}),
    ("menu_call", {"tool": "think"}),
]


async def answered(house: App, version: str) -> list[Any]:
    """The answers to everything, as they are on the wire."""
    async with within.Wire(house.server, version).open() as wire:
        asked = [await wire.ask("tools/list")]
        for name, arguments in CALLS:
            asked.append(await wire.ask("tools/call", {"name": name, "arguments": arguments}))
        asked.append(await wire.ask("tools/call", {"name": "think"}))
    return asked


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
async def test_our_answers_are_those_of_the_sdk(house: App, version: str) -> None:
    ours = await answered(house, version)
    kept = list(house.server.middleware)
    house.server.middleware.clear()
    try:
        theirs = await answered(house, version)
    finally:
        house.server.middleware[:] = kept
    for mine, their, asked in zip(ours, theirs, ["tools/list", *CALLS, "think"], strict=True):
        assert isinstance(mine, JSONRPCResponse), asked
        assert plain(mine) == plain(their), asked
        # And as we write it onto a pipe.
        assert json.loads(encode_message(mine)) == plain(their), asked
    assert isinstance(ours[0].result["tools"], EncodedTools), "the list was not taken from what is prepared"


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
async def test_every_tool_can_be_shown_in_every_revision(house: App, version: str) -> None:
    menus = house.configuration.policy.menus
    tools = list(house.configuration.policy.tools.values())
    whole = ListToolsResult.model_validate({"tools": [build_tool_entry(tool, menus) for tool in tools]})
    dumped = whole.model_dump(by_alias=True, mode="json", exclude_none=True)
    dumped |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    theirs = methods.serialize_server_result("tools/list", version, dumped)["tools"]
    assert [prepare_tool(tool, menus, version) for tool in tools] == theirs
    for tool, shown in zip(tools, theirs, strict=True):
        assert shown["name"] == tool.name
        assert shown["inputSchema"]["type"] == "object"
        assert ("outputSchema" in shown) is (tool.result is not None)


async def test_every_revision_the_sdk_serves_is_served(house: App) -> None:
    assert [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS] == list(KNOWN_PROTOCOL_VERSIONS)
    assert MODERN_PROTOCOL_VERSIONS == (MODERN,)


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
async def test_what_bursts_inside_leaks_nothing(house: App, version: str) -> None:
    async with within.Wire(house.server, version).open() as wire:
        said = (await wire.ask("tools/call", {"name": "end_bursting", "arguments": {}})).model_dump_json()
    assert "INTERNAL" in said
    assert "secret of the house" not in said
    assert "RuntimeError" not in said


# What we touch beneath its public face.


class Probe:
    """Outermost of all: sees every message with the connection it came over, and hears when that ends."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.stacks: list[AsyncExitStack] = []
        self.sessions: list[str | None] = []
        self.ended: list[int] = []

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        link = get_connection(ctx)
        self.methods.append(ctx.method)
        assert isinstance(link.exit_stack, AsyncExitStack)
        assert isinstance(link.state, dict)
        assert isinstance(link.initialize_accepted, bool)
        if link.exit_stack not in self.stacks:
            self.stacks.append(link.exit_stack)
            self.sessions.append(link.session_id)
            link.exit_stack.callback(self.ended.append, len(self.stacks))
        return await call_next(ctx)

    async def over(self, number: int) -> None:
        with anyio.fail_after(PATIENCE):
            while number not in self.ended:
                await anyio.sleep(0.01)


@pytest.fixture
async def probe(house: App) -> AsyncGenerator[Probe]:
    probe = Probe()
    house.server.middleware.insert(0, probe)
    yield probe
    house.server.middleware.remove(probe)


@pytest.fixture
def left(house: App, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions whose seats were given up."""
    gone: list[str] = []
    disconnect = house.core.sessions.close

    def disconnected(live: Any) -> None:
        gone.append(live.session.id)
        disconnect(live)

    monkeypatch.setattr(house.core.sessions, "close", disconnected)
    return gone


async def test_a_pipe_that_is_closed_ends_its_connection(house: App, probe: Probe, left: list[str]) -> None:
    async with within.Wire(house.server, "2025-11-25").open() as wire:
        await wire.ask("tools/list")
        await wire.ask("tools/call", {"name": "menu_list"})
        assert probe.ended == []
    assert probe.sessions == [None]
    assert probe.ended == [1]
    assert len(left) == 1


async def test_in_the_modern_era_every_request_is_a_connection(house: App, probe: Probe, left: list[str]) -> None:
    async with within.Wire(house.server, MODERN).open() as wire:
        for number in (1, 2):
            await wire.ask("tools/list")
            assert probe.ended == list(range(1, number + 1))
    assert left == []


async def threaded(what: Any, *args: Any) -> Any:
    return await anyio.to_thread.run_sync(partial(what, *args), abandon_on_cancel=True)


async def test_a_session_that_is_deleted_ends_its_connection(house: App, probe: Probe, left: list[str]) -> None:
    async with within.over_http(house) as here:
        one = await threaded(RawClient(here).hello)
        await threaded(one.names)
        assert probe.sessions == [one.session]
        assert await threaded(one.bye) == 200
        await probe.over(1)
        assert len(left) == 1


async def test_a_session_nobody_uses_ends_its_connection(
    house: App, probe: Probe, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "IDLE_SECONDS", 0.3)
    async with within.over_http(house) as here:
        one = await threaded(RawClient(here).hello)
        await threaded(one.names)
        hearing = await threaded(one.listening)
        assert await threaded(hearing.quiet, 0.6)
        # Whoever listens is there.
        assert probe.ended == []
        one.close()
        await probe.over(1)
        assert len(left) == 1


async def test_a_stream_of_the_older_transport_that_is_left_ends_its_connection(
    house: App, probe: Probe, left: list[str]
) -> None:
    async with within.over_http(house) as here:
        async with held(over_sse(here), "legacy") as one:
            await one.names()
            assert probe.ended == []
        await probe.over(1)
        assert len(left) == 1


async def test_a_modern_call_over_http_does_not_make_the_list_first(house: App, probe: Probe) -> None:
    async with within.over_http(house) as here:
        one = RawClient(here, era=MODERN)
        result = await threaded(partial(one.call, "Read", file_path="notes.md"))
        assert "first" in result["content"][0]["text"]
        assert probe.methods == ["tools/call"]
        # Not even where a header has to repeat an argument.
        await threaded(partial(one.send, "tools/call", {"name": "end_mirrored", "arguments": {"region": "eu"}}))
        assert "tools/list" not in probe.methods
        one.close()


async def test_a_schema_is_looked_up_only_where_headers_repeat_arguments(house: App) -> None:
    look_up = house.server.get_tool_input_schema
    assert look_up is not None
    asking = {name for name in house.configuration.policy.tools if look_up(name) is not None}
    assert asking == {"end_mirrored"}
    assert look_up("nothing_of_the_kind") is None


async def test_the_first_of_the_middleware_is_the_outermost(house: App) -> None:
    order: list[str] = []

    def named(name: str) -> Any:
        async def middleware(ctx: Context, call_next: CallNext) -> HandlerResult:
            order.append(name)
            return await call_next(ctx)

        return middleware

    kept = list(house.server.middleware)
    house.server.middleware[:] = [named("outer"), *kept, named("inner")]
    try:
        async with within.Wire(house.server, MODERN).open() as wire:
            # A list is answered by the outermost of ours, a call by the innermost; anything else reaches the SDK.
            reaching: list[tuple[str, dict[str, Any], list[str]]] = [
                ("tools/list", {}, ["outer"]),
                ("tools/call", {"name": "think", "arguments": {"content": "x"}}, ["outer"]),
                ("tools/call", {"name": "menu_list", "inputResponses": {}}, ["outer", "inner"]),
                ("prompts/list", {}, ["outer", "inner"]),
            ]
            for method, params, reached in reaching:
                order.clear()
                await wire.ask(method, params)
                assert order == reached, method
    finally:
        house.server.middleware[:] = kept
