"""Does everything that clients and servers say to each other pass through menugate, whichever era each speaks?"""

import json
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import LOG_LEVEL_META_KEY
from pydantic import BaseModel

from mcp_server.policy.upstream_names import slug_tool
from tests.clients.clients import ERAS, Held, held, over_http, over_stdio, text
from tests.clients.served import ROOT, served
from tests.journeys.test_upstreams import MODE, approve, configure, entry, run_command
from tests.upstreams.ground import FarServer
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.anyio
ROWS: list[dict[str, Any]] = load_yaml((ROOT / "tests" / "tables" / "upstream_passing.yaml").read_text())
UP = {
    "near_old": ("up-stdio", "up-legacy"),
    "near_new": ("up-stdio", "up-modern"),
    "far_old": ("up-http", "up-legacy"),
    "far_new": ("up-http", "up-modern"),
}
SECRET = "canary-7d41c09e"
"""In menugate's store."""
STEP_SECONDS = 30.0
BAD = {"near_dead": "dead", "near_mute": "hang_at_start", "far_dead": "", "far_mute": ""}
"""Servers that worked when they were approved: how those that menugate starts misbehave since."""
UPDATED = "notifications/resources/updated"


@dataclass
class Ear:
    """What a client was asked and told since the last step."""

    heard: dict[str, list[Any]] = field(default_factory=lambda: {"logged": [], "asked": [], "progressed": []})

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard["logged"].append(params.model_dump(mode="json", exclude_none=True))

    async def ask(self, ctx: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.heard["asked"].append(params.message)
        return types.ElicitResult(action="accept", content={"colour": "blue"})

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard["progressed"].append([progress, total, message])

    async def listen(self, kind: str, wanted: Any) -> None:
        """Wait until something of this kind that fits was heard."""
        try:
            with anyio.fail_after(STEP_SECONDS):
                while not any(fits(wanted, one) for one in self.heard[kind]):
                    await anyio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{wanted} was not {kind}, but {self.heard[kind]}") from None


@dataclass
class Journey:
    """One client, and one of the servers that it reaches through menugate."""

    held: Held
    ear: Ear
    name: str
    era: str
    bad: str = ""
    """The server that misbehaves, in rows about one."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """What no other row has."""

    @property
    def prefix(self) -> str:
        return self.name.replace("_", "")

    def fill(self, value: Any) -> Any:
        """Write the server's names in place of what stands for them in the table."""
        if isinstance(value, str):
            names = {"$LONG": slug_tool(self.prefix, "x" * 70), "$S": self.prefix, "$M": self.name}
            names |= {"$BAD": self.bad.replace("_", ""), "$KEY": self.key, "$CANARY": SECRET}
            for word, name in names.items():
                value = value.replace(word, name)
            return value
        if isinstance(value, dict):
            return {self.fill(key): self.fill(one) for key, one in cast(dict[str, Any], value).items()}
        return [self.fill(one) for one in cast(list[Any], value)] if isinstance(value, list) else value

    @asynccontextmanager
    async def told(self, method: str | None) -> AsyncGenerator[None, None]:
        """At the end, wait until the client was told; newer clients listen for it."""
        if method is None:
            yield
        elif self.era == "legacy":
            before = self.held.told.count(method)
            yield
            while self.held.told.count(method) == before:
                await anyio.sleep(0.02)
        else:
            async with self.held.client.listen(tools_list_changed=True) as changes:
                yield
                assert isinstance(await anext(aiter(changes)), ToolsListChanged)

    async def take(self, step: dict[str, Any]) -> None:
        """Take one step, and compare what came of it."""
        kind = next(kind for kind in ASK if kind in step)
        for heard in self.ear.heard.values():
            heard.clear()
        refusal, answer = "", None
        try:
            with anyio.fail_after(step.get("within", STEP_SECONDS)):
                async with self.told(step.get("told")):
                    answer = await ASK[kind](self, step)
        except MCPError as error:
            refusal = json.dumps([error.error.message, error.error.data])
        told = to_json(answer) if answer is not None else None
        if "refused" in step:
            refusal = refusal or str(told)
            assert step["refused"] in refusal, refusal[:500]
        else:
            assert not refusal, refusal
        if "gives" in step:
            assert fits(step["gives"], told), f"{step['gives']} is not in {str(told)[:1500]}"
        if "has" in step:
            assert any(fits(step["has"], one) for one in told or ()), f"{step['has']} is none of {str(told)[:3000]}"
        if "once" in step:
            found = [one for one in told or () if fits(step["once"], one)]
            assert len(found) == 1, f"{step['once']} is {len(found)} times in {str(told)[:3000]}"
        if "lacks" in step:
            assert step["lacks"] not in str(told), str(told)[:500]
        for heard in ("logged", "asked", "progressed"):
            for one in step[heard] if isinstance(step.get(heard), list) else [step[heard]] if heard in step else []:
                await self.ear.listen(heard, one)


async def call_tool(journey: Journey, step: dict[str, Any]) -> Any:
    client, meta = journey.held.client, dict(step.get("meta", {}))
    if level := step.get("level"):
        if journey.era == "legacy":
            # The client's own method warns of the revision that drops it.
            wanted = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
            await client.session.send_request(wanted, types.EmptyResult)
        else:
            meta[LOG_LEVEL_META_KEY] = level
    given = cast(types.RequestParamsMeta, meta)
    if "meanwhile" in step:
        return await call_beside(journey, step)
    return await client.call_tool(
        step["call"], step.get("with", {}), progress_callback=journey.ear.progress, meta=given
    )


async def call_beside(journey: Journey, step: dict[str, Any]) -> Any:
    """Take the steps of `meanwhile` while the call is running, and see that it still is when they are done."""
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await journey.held.client.call_tool(step["call"], step.get("with", {})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        for one in step["meanwhile"]:
            await journey.take(one)
        assert not answers, f"`{step['call']}` was answered first: {to_json(answers[0])}"
    return answers[0]


async def cancel_call(journey: Journey, step: dict[str, Any]) -> Any:
    """Call, and cancel that as soon as the server is at work."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call_tool, journey, {**step, "call": step["cancel"]})
        await journey.ear.listen("progressed", [0, 1, "running"])
        tasks.cancel_scope.cancel()


async def wait_for_call(journey: Journey, step: dict[str, Any]) -> Any:
    """Call until the answer is the one that the step names."""
    while True:
        answer = await call_tool(journey, {**step, "call": step["until"]})
        if fits(step["gives"], to_json(answer)):
            return answer
        await anyio.sleep(0.1)


async def list_entries(journey: Journey, step: dict[str, Any]) -> Any:
    client = journey.held.client
    match step["list"]:
        case "tools":
            return (await client.list_tools()).tools
        case "resources":
            return (await client.list_resources()).resources
        case "templates":
            return (await client.list_resource_templates()).resource_templates
        case _:
            return (await client.list_prompts()).prompts


async def read_resource(journey: Journey, step: dict[str, Any]) -> Any:
    return await journey.held.client.read_resource(step["read"])


async def get_prompt(journey: Journey, step: dict[str, Any]) -> Any:
    return await journey.held.client.get_prompt(step["prompt"], step.get("with", {}))


async def complete(journey: Journey, step: dict[str, Any]) -> Any:
    name, argument = step["complete"], step["with"]
    ref = types.ResourceTemplateReference(uri=name) if "://" in name else types.PromptReference(name=name)
    (given,) = argument.items()
    return await journey.held.client.complete(ref, {"name": given[0], "value": given[1]})


ASK: Mapping[str, Callable[[Journey, dict[str, Any]], Awaitable[Any]]] = {
    "call": call_tool,
    "cancel": cancel_call,
    "until": wait_for_call,
    "list": list_entries,
    "read": read_resource,
    "prompt": get_prompt,
    "complete": complete,
}


def to_json(value: Any) -> Any:
    if isinstance(value, list):
        return [to_json(one) for one in cast(list[Any], value)]
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if isinstance(value, BaseModel) else value


def fits(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, dict):
        entries = cast(dict[str, Any], wanted)
        theirs = cast(dict[str, Any], given) if isinstance(given, dict) else None
        return theirs is not None and all(key in theirs and fits(one, theirs[key]) for key, one in entries.items())
    if isinstance(wanted, list):
        mine = cast(list[Any], wanted)
        if not isinstance(given, list) or len(cast(list[Any], given)) != len(mine):
            return False
        return all(fits(one, other) for one, other in zip(mine, cast(list[Any], given), strict=True))
    if isinstance(wanted, str) and wanted.startswith("~"):
        return isinstance(given, str) and wanted[1:] in given
    return wanted == given


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the four servers in its configuration, all approved."""
    folder = tmp_path_factory.mktemp("passing")
    (folder / "work").mkdir()
    (folder / "home").mkdir()
    far = {
        name: FarServer.start(folder / f"{name}.log", name="everything", who=name)
        for name in (*UP, *BAD)
        if name.startswith("far")
    }
    servers: dict[str, dict[str, Any]] = {
        name: {"url": f"http://127.0.0.1:{server.port}/mcp"} for name, server in far.items()
    }
    begun = folder / "begun"
    for name, (_, era) in UP.items():
        servers.setdefault(name, entry("everything", env={"PYTHONPATH": str(ROOT), "WHO": name}))
        servers[name] |= {"era": era.removeprefix("up-"), "roots": True, "changes": "allow-new"}
    for name, how in BAD.items():
        servers.setdefault(name, entry("raw", how, str(begun)))
        servers[name] |= {"start_timeout": 3}
    # These were never anything else, and nobody approved them.
    servers |= {"missing": {"command": "no-such-program"}, "stillborn": entry("raw", "dead")}
    servers |= {"silent": entry("raw", "hang_at_start", start_timeout=3)}
    rules = {"deny": [f"{name}:{what}" for name in UP for what in ("resource(memo://secret)", "hidden")]}
    configure(folder, servers, listing="flat", rules=rules)
    flags = ("--config", str(folder / "config.yaml"), "--workspace", str(folder / "work"))
    run_command(folder, "secret", "set", "CANARY", *flags, given=SECRET)
    for name in (*UP, *BAD):
        approve(folder, name)
    begun.touch()
    far["far_dead"].stop()
    far["far_mute"].stop()
    with socket.create_server(("127.0.0.1", far["far_mute"].port)):
        yield folder
    for name in UP:
        if name in far:
            far[name].stop()


@asynccontextmanager
async def connected(folder: Path, era: str, transport: str) -> AsyncGenerator[tuple[Held, Ear], None]:
    ear, work, home = Ear(), folder / "work", folder / "home"
    flags = ("--config", str(folder / "config.yaml"))
    callbacks = {"logging_callback": ear.log, "elicitation_callback": ear.ask}
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            target: Any = over_stdio(work, home, *flags)
        else:
            target = over_http(stack.enter_context(served(work, home, *flags)))
        yield await stack.enter_async_context(held(target, era, "claude-code", **callbacks)), ear


def is_about(row: Mapping[str, Any], kinds: set[str]) -> bool:
    return set(row.get("only", ())) <= kinds


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
async def test_what_passes(approved: Path, era: str, transport: str) -> None:
    faults: list[str] = []
    async with connected(approved, era, transport) as (client, ear):
        down = {f"down-{transport}", "down-legacy" if era == "legacy" else "down-modern"}
        for name, up in UP.items():
            for row in (row for row in ROWS if is_about(row, down | {*up})):
                if "bad" in row and name != next(iter(UP)):
                    continue
                for bad in row.get("bad", [""]):
                    journey = Journey(client, ear, name, era, bad)
                    try:
                        for step in row["steps"]:
                            await journey.take(journey.fill(step))
                    except Exception as fault:  # the other rows are worth knowing, too
                        faults.append(f"{name}: {row['name']}: {type(fault).__name__}: {str(fault)[:1500]}")
    assert not faults, "\n".join(faults)


async def subscribe(client: Held, uri: str) -> None:
    # The client's own method warns of the revision that drops it.
    wanted = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.client.session.send_request(wanted, types.EmptyResult)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_learns_that_a_resource_has_changed(approved: Path, era: str, transport: str) -> None:
    async with connected(approved, era, transport) as (held, _ear):
        for name in UP:
            prefix = name.replace("_", "")
            uri, denied = f"memo://{prefix}/notes", f"memo://{prefix}/secret"
            with anyio.fail_after(STEP_SECONDS):
                if era == "legacy":
                    with pytest.raises(MCPError):
                        await subscribe(held, denied)
                    await subscribe(held, uri)
                    before = held.told.count(UPDATED)
                    await held.call(f"{prefix}_touch")
                    while held.told.count(UPDATED) == before:
                        await anyio.sleep(0.02)
                else:
                    async with held.client.listen(resource_subscriptions=[uri, denied]) as changes:
                        await held.call(f"{prefix}_touch")
                        assert getattr(await anext(aiter(changes)), "uri", None) == uri


@pytest.mark.parametrize(
    ("wanted", "given", "answer"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ([{"a": 1}], [{"a": 1}, {}], False),
        ("~b", "abc", True),
        ("b", "abc", False),
    ],
)
def test_the_table_is_compared_as_it_says(wanted: Any, given: Any, answer: bool) -> None:
    assert fits(wanted, given) is answer


@asynccontextmanager
async def by_modes(
    folder: Path, era: str, transport: str, tools: Sequence[str] = ("Read", "plain:add"), **more: Any
) -> AsyncGenerator[Held, None]:
    """A client that sees the tools of its mode alone, of a server that only the mode `mixed` names."""
    (folder / "menus").mkdir()
    (folder / "menus" / "mixed.yaml").write_text(json.dumps({**MODE, "tools": [*tools]}))
    for name in ("work", "home"):
        (folder / name).mkdir()
    server = entry("everything", env={"PYTHONPATH": str(ROOT)})
    configure(folder, {"plain": server}, menus=["menus"], **more)
    approve(folder, "plain")
    async with connected(folder, era, transport) as (client, _ear):
        yield client


@pytest.mark.parametrize(("era", "transport"), [("legacy", "stdio"), ("legacy", "http"), (ERAS[1], "stdio")])
async def test_resources_and_prompts_are_where_the_tools_are(tmp_path: Path, era: str, transport: str) -> None:
    async with by_modes(tmp_path, era, transport) as client:

        async def seen() -> tuple[bool, bool]:
            resources, prompts = await client.client.list_resources(), await client.client.list_prompts()
            uris, names = [one.uri for one in resources.resources], [one.name for one in prompts.prompts]
            return "memo://plain/notes" in uris, "plain_plan" in names

        assert await seen() == (False, False)
        with pytest.raises(MCPError, match="WRONG_MODE"):
            await client.client.read_resource("memo://plain/notes")
        with pytest.raises(MCPError, match="WRONG_MODE"):
            await client.client.get_prompt("plain_plan", {"topic": "a"})
        before = len(client.told)
        await client.call("menu_enter", mode="mixed")
        assert await seen() == (True, True)
        assert (await client.client.read_resource("memo://plain/notes")).contents
        if era == "legacy" and transport == "stdio":
            told = client.told[before:]
            assert {f"notifications/{one}/list_changed" for one in ("tools", "resources", "prompts")} <= {*told}
        await client.call("menu_exit")
        assert await seen() == (False, False)


async def test_a_client_without_a_session_has_the_resources_of_every_mode(tmp_path: Path) -> None:
    async with by_modes(tmp_path, ERAS[1], "http") as client:
        uris = [one.uri for one in (await client.client.list_resources()).resources]
        assert "memo://plain/notes" in uris
        assert (await client.client.read_resource("memo://plain/notes")).contents


async def test_every_read_is_on_record(tmp_path: Path) -> None:
    async with by_modes(tmp_path, "legacy", "stdio") as client:
        with pytest.raises(MCPError):
            await client.client.read_resource("memo://plain/notes")
        await client.call("menu_enter", mode="mixed")
        await client.client.read_resource("memo://plain/notes")
    flags = ("--config", str(tmp_path / "config.yaml"), "--workspace", str(tmp_path / "work"))
    says = run_command(tmp_path, "audit", "tail", *flags)
    assert says.count("plain:resource") >= 2, says


@pytest.mark.parametrize("era", ERAS)
async def test_another_server_is_used_from_any_mode_through_its_own_gate(tmp_path: Path, era: str) -> None:
    rules = {"deny": ["plain:fail", "plain:resource(memo://secret)"]}
    async with by_modes(tmp_path, era, "stdio", rules=rules, tools=["Read", "plain:*"]) as client:
        await client.call("menu_enter", mode="integrations")

        async def use(command: str, **options: Any) -> types.CallToolResult:
            return await client.call("mcp_tool", command=command, server="plain", options=options)

        assert "- plain: " in text(await client.call("mcp_tool", command="list_servers"))
        listed = text(await use("list_tools"))
        assert "- add: plain_add(" in listed and "fail" not in listed
        result = await use("call_tool", tool="add", arguments={"a": 1, "b": 2})
        assert result.structured_content == {"sum": 3}
        read = to_json(await use("read_resource", uri="memo://plain/notes"))
        assert not read["isError"], read
        assert read["content"][0]["resource"]["uri"] == "memo://plain/notes"
        own = to_json(await use("read_resource", uri="memo://days/monday"))
        assert own["content"][0]["resource"]["text"] == "text of memo://days/monday"
        for options, code in (
            ({"tool": "nothing"}, "UNKNOWN_TOOL"),
            ({"tool": "fail"}, "UNKNOWN_TOOL"),
            ({"tool": "Read", "arguments": {"file_path": "x"}}, "UNKNOWN_TOOL"),
            ({"tool": "add", "arguments": {"a": "one"}}, "INVALID_ARGUMENTS"),
            ({}, "INVALID_ARGUMENTS"),
        ):
            assert code in text(await use("call_tool", **options))
        assert "RULE_DENIED" in text(await use("read_resource", uri="memo://secret"))
        assert "NOT_FOUND" in text(await use("read_resource", uri="memo://unheard"))
        asked = await use("call_tool", tool="ask", arguments={})
        assert '"colour": "blue"' in text(asked)
    says = run_command(
        tmp_path, "audit", "tail", "--config", str(tmp_path / "config.yaml"), "--workspace", str(tmp_path / "work")
    )
    assert "plain_add" in says and "mcp_tool" in says
