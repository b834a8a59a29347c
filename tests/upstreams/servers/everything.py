"""A server with something of everything that a server can offer, which speaks both eras."""

import asyncio
import base64
import json
import os
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import LOG_LEVEL_META_KEY

from tests.upstreams.servers.ordinary import BUS, OrdinaryServer, ask, serve

Context = ServerRequestContext[Any, Any]
PIXEL = base64.b64encode(b"not really a picture").decode()
BIG = 10 << 20
OUTPUT = {
    "type": "object",
    "properties": {"sum": {"type": "number", "description": "Of both"}},
    "required": ["sum"],
    "$defs": {"unused": {"type": "string"}},
}
ICON = types.Icon(src="https://example.org/icon.png", mime_type="image/png", sizes=["48x48"])
LEVELS: dict[str, str] = {}
"""The level that an older client set, as the only entry."""
CANCELLED: list[str] = []
"""The calls of `slow` that were cancelled, by what they were given."""
LOGGED_IN: list[str] = []
TELLING: list["asyncio.Task[None]"] = []
BAD_SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"$ref": "https://example.org/x.json"}}},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    {"type": "object", "properties": {"a": {"type": 5}}},
]


def build_tools() -> list[types.Tool]:
    anything: dict[str, Any] = {"type": "object"}
    numbers = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    described = types.Tool(
        name="add",
        title="Add numbers",
        description="Add two numbers.",
        input_schema=numbers,
        output_schema=OUTPUT,
        icons=[ICON],
        annotations=types.ToolAnnotations(title="Sum", read_only_hint=True, open_world_hint=False),
        _meta={"vendor/key": {"deep": [1, None]}, "ui": {"resourceUri": "ui://panel"}},
    )
    names = (
        "blocks",
        "fail",
        "slow",
        "progress",
        "ask",
        "log",
        "meta",
        "roots",
        "big",
        "cancelled",
        "crash",
        "login",
        "who",
        "one",
        "change",
        "touch",
        "hidden",
        "x" * 70,
    )
    words = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "key": {"type": "string", "x-mcp-header": "Key"},
    }
    marked = types.Tool(name="headers", input_schema={"type": "object", "properties": words})
    bad = [types.Tool(name=f"bad{number}", input_schema=schema) for number, schema in enumerate(BAD_SCHEMAS)]
    twice = [types.Tool(name="twice", title=title, input_schema=anything) for title in ("The first", "The second")]
    return [
        bad[0],
        described,
        marked,
        *(types.Tool(name=name, input_schema=anything) for name in names),
        *bad[1:],
        *twice,
    ]


TOOLS = build_tools()


async def list_tools(ctx: object, params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


def text(words: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)], **more)


async def call_tool(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "add":
            return types.CallToolResult(
                content=[types.TextContent(text="summed")],
                structured_content={"sum": given["a"] + given["b"]},
                _meta={"vendor/took": 3},
            )
        case "blocks":
            return types.CallToolResult(content=build_blocks())
        case "fail":
            return text("it failed", is_error=True, structured_content={"why": "because"})
        case "slow":
            try:
                await ctx.session.report_progress(0, 1, "running")
                await anyio.sleep(600)
            except BaseException:
                CANCELLED.append(given["key"])
                raise
        case "cancelled":
            return text(str(given["key"] in CANCELLED))
        case "login":
            return await demand_login(ctx, str(given["key"]))
        case "crash":
            os._exit(3)
        case "who":
            return text(os.environ.get("WHO", ""))
        case "progress":
            for done in range(2):
                await ctx.session.report_progress(done + 1, 2, f"step {done + 1}")
        case "ask":
            return await ask(ctx, params)
        case "log":
            return await log(ctx, given)
        case "headers":
            sent: Mapping[str, str] = ctx.request.headers if ctx.request is not None else {}
            return text(json.dumps({key: sent[key] for key in sent if key.startswith("mcp-param-")}))
        case "meta":
            kept = {key: value for key, value in (ctx.params or {}).get("_meta", {}).items() if "/" in key}
            return text(json.dumps(kept, sort_keys=True))
        case "roots":
            return await list_roots(ctx, params)
        case "big":
            return build_big(str(given.get("kind", "text")))
        case "change":
            await change_tools(ctx, bool(given.get("gone")))
        case "touch":
            await BUS.publish(ResourceUpdated("memo://notes"))
            await ctx.session.send_resource_updated("memo://notes")
        case "grown":
            return text("grown")
        case _:
            return text(f"called {params.name[:3]}")
    return text("done")


async def demand_login(ctx: Context, key: str) -> types.CallToolResult:
    """Refuse until the user has been at an address, as servers of the older revisions do."""
    if key in LOGGED_IN:
        return text("logged in")
    LOGGED_IN.append(key)
    url = types.ElicitRequestURLParams(message="Log in", url=f"https://a.example/{key}", elicitation_id=key)
    done = types.ElicitCompleteNotificationParams(elicitation_id=key)

    async def tell() -> None:
        await anyio.sleep(0.2)
        await ctx.session.send_notification(types.ElicitCompleteNotification(params=done))

    TELLING.append(asyncio.get_running_loop().create_task(tell()))
    raise UrlElicitationRequiredError([url])


async def change_tools(ctx: Context, gone: bool) -> None:
    """Offer one tool more, or take it out again."""
    kept = [tool for tool in TOOLS if tool.name != "grown"]
    TOOLS[:] = kept if gone else [*kept, types.Tool(name="grown", input_schema={"type": "object"})]
    await BUS.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()


def build_big(kind: str) -> types.CallToolResult:
    data = base64.b64encode(bytes(BIG)).decode() if kind != "text" else ""
    match kind:
        case "image":
            return types.CallToolResult(content=[types.ImageContent(data=data, mime_type="image/png")])
        case "blob":
            resource = types.BlobResourceContents(uri="memo://big", blob=data)
            return types.CallToolResult(content=[types.EmbeddedResource(resource=resource)])
        case _:
            return text("y" * BIG)


def build_blocks() -> list[types.ContentBlock]:
    audience = types.Annotations(audience=["user"], priority=0.5)
    return [
        types.TextContent(text="words", annotations=audience, _meta={"vendor/block": 1}),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        types.AudioContent(data=PIXEL, mime_type="audio/wav"),
        types.ResourceLink(uri="memo://linked", name="linked", title="A link", icons=[ICON], size=5),
        types.ResourceLink(uri="https://example.org/page", name="page"),
        types.EmbeddedResource(
            resource=types.TextResourceContents(uri="memo://inside", text="inside", mime_type="text/plain")
        ),
        types.EmbeddedResource(resource=types.BlobResourceContents(uri="memo://bytes", blob=PIXEL)),
    ]


async def log(ctx: Context, given: dict[str, Any]) -> types.CallToolResult:
    """Log at the level that was asked for, and say which one the client wants."""
    wanted = (ctx.params or {}).get("_meta", {}).get(LOG_LEVEL_META_KEY) or LEVELS.get("set")
    note = types.LoggingMessageNotificationParams(level=given.get("level", "info"), data={"a": [1]}, logger="part")
    await ctx.session.send_notification(types.LoggingMessageNotification(params=note), ctx.request_id)
    return text(str(wanted))


async def list_roots(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if not ctx.session.can_send_request:
        if params.input_responses is None:
            return types.InputRequiredResult(input_requests={"r": types.ListRootsRequest()}, request_state="")
        answer = params.input_responses["r"].model_dump(mode="json")
    else:
        metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
        reply = await ctx.session.send_request(types.ListRootsRequest(), types.ListRootsResult, metadata=metadata)
        answer = reply.model_dump(mode="json")
    return text(str([root["name"] for root in answer["roots"]]))


async def set_level(ctx: object, params: types.SetLevelRequestParams) -> types.EmptyResult:
    LEVELS["set"] = params.level
    return types.EmptyResult()


async def list_resources(ctx: object, params: object) -> types.ListResourcesResult:
    notes = types.Resource(
        name="notes", title="Notes", uri="memo://notes", mime_type="text/plain", icons=[ICON], _meta={"vendor/r": 1}
    )
    others = [types.Resource(name=name, uri=f"memo://{name}") for name in ("bytes", "long", "secret", "broken", "huge")]
    return types.ListResourcesResult(resources=[notes, *others, types.Resource(name="panel", uri="ui://panel")])


async def list_templates(ctx: object, params: object) -> types.ListResourceTemplatesResult:
    day = types.ResourceTemplate(name="day", uri_template="memo://days/{day}", description="One day")
    return types.ListResourceTemplatesResult(resource_templates=[day])


BLOBS = {"memo://bytes": PIXEL, "memo://huge": base64.b64encode(bytes(BIG)).decode()}


async def read_resource(ctx: object, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "memo://broken":
        raise ValueError("broken")
    contents: list[types.TextResourceContents | types.BlobResourceContents] = [
        types.BlobResourceContents(uri=uri, blob=BLOBS[uri], mime_type="image/png")
        if uri in BLOBS
        else types.TextResourceContents(
            uri=uri,
            text="long\n" * 20_000 if uri == "memo://long" else f"text of {uri}",
            mime_type="text/plain",
            _meta={"vendor/c": 1},
        )
    ]
    return types.ReadResourceResult(contents=contents)


async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def unsubscribe(ctx: object, params: object) -> types.EmptyResult:
    return types.EmptyResult()


async def list_prompts(ctx: object, params: object) -> types.ListPromptsResult:
    topic = types.PromptArgument(name="topic", description="What about", required=True)
    plan = types.Prompt(name="plan", title="Make a plan", description="Plan it.", arguments=[topic], icons=[ICON])
    return types.ListPromptsResult(prompts=[plan])


async def get_prompt(ctx: object, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    topic = (params.arguments or {}).get("topic", "")
    linked = types.EmbeddedResource(resource=types.TextResourceContents(uri="memo://notes", text="noted"))
    messages = [
        types.PromptMessage(role="user", content=types.TextContent(text=f"Plan {topic}.")),
        types.PromptMessage(role="assistant", content=linked),
    ]
    return types.GetPromptResult(description="A plan", messages=messages)


async def complete(ctx: object, params: types.CompleteRequestParams) -> types.CompleteResult:
    known = {"topic": ("trip", "train"), "day": ("monday", "tuesday")}[params.argument.name]
    values = [one for one in known if one.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


def build_server() -> Server[Any]:
    server = OrdinaryServer(
        "everything",
        version="3",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


if __name__ == "__main__":
    serve(build_server())
