"""What does the protocol server answer? Every request of every client arrives here and is handed on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, cast

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, SERVER_INFO_META_KEY
from pydantic import ValidationError

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.posture import CurrentPostures
from mcp_server.calls.request import CallRequest, Interruption
from mcp_server.calls.sessions import Sessions
from mcp_server.calls.upstream_offers import ServerOffers
from mcp_server.model.menus import Listing
from mcp_server.model.results import Ending
from mcp_server.model.sessions import Session
from mcp_server.model.tool_packs import PromptCaller
from mcp_server.model.tools import Tool
from mcp_server.wire.caller import (
    Caller,
    Context,
    get_client_version,
    get_connection,
    identify_caller,
    keep_for_connection,
    observe_surface,
)
from mcp_server.wire.client import LOG_LEVEL, ClientChannel, ClientUnsupported, InputRequired, mend_answers
from mcp_server.wire.encoding import leave_answer
from mcp_server.wire.listings import Listings
from mcp_server.wire.notifications import ClientList, Notifier, check_followable, make_aside_teller, make_teller
from mcp_server.wire.prompts import OfferHandlers, refuse_cursor
from mcp_server.wire.revisions import COMPLETE, shape_result
from mcp_server.wire.translate import replace_half_surrogates, result_from_ending
from mcp_server.wire.upstream_offers import ServerOfferHandlers, open_every_mode

log = logging.getLogger("menugate.wire")
SEALED = frozenset({"tools/call", "prompts/get", "resources/read"})
PLAIN = frozenset({"name", "arguments", "_meta"})


class MenuServer(Server[Any]):
    """The transports ask for the options without arguments, and the SDK then says that lists never change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(changing, experimental_capabilities, extensions)


class Runner(Protocol):
    run: Callable[[CallRequest], Awaitable[Ending]]
    """Replaced once the pipeline is built."""


@dataclass
class Handlers:
    """The request handlers, and what they hand on to."""

    pipeline: Runner
    """Runs a call through the gate; there is no other way to run one."""
    postures: CurrentPostures
    sessions: Sessions
    listings: Listings
    notices: Notifier
    offers: OfferHandlers
    owner: str
    pinned: str | None
    instructions: Callable[[str | None], str]
    schema_of: Callable[[str], dict[str, Any] | None]
    patience: float
    server_offers: ServerOffers
    _process: ClientList | None = field(default=None)
    """The one client of a stdio process in the modern era, where each request is a new connection."""

    @cached_property
    def of_servers(self) -> ServerOfferHandlers:
        return ServerOfferHandlers(self, self.server_offers)

    def get_client_list(self, ctx: Context, who: Caller) -> ClientList:
        """Return the client's list and its live session, which last as long as there is a connection to keep them."""
        if who.protocol.connects:
            return cast(
                ClientList,
                keep_for_connection(ctx, "menugate watch", lambda: self._watch_client(ctx, who), self._forget_client),
            )
        if who.transport == "stdio":
            self._process = self._process or self._watch_client(ctx, who)
            return self._process
        return self._make_client_list(who, passing=True)

    def _watch_client(self, ctx: Context, who: Caller) -> ClientList:
        watch = self._make_client_list(who)
        watch.tell = make_teller(ctx) if who.protocol.connects else None
        return self.notices.watch(watch)

    def _make_client_list(self, who: Caller, passing: bool = False) -> ClientList:
        face = self.listings.choose_listing(who)
        live = self.sessions.open(who.principal, self._get_pinned_mode(who), face is Listing.FLAT, passing)
        return ClientList(who.client, who.principal, live, face)

    def _forget_client(self, watch: ClientList) -> None:
        self.notices.unwatch(watch)
        self.sessions.close(watch.live)
        for unfollow in watch.followed.values():
            asyncio.ensure_future(unfollow())  # noqa: RUF006  # it only takes the client off a list

    def _get_pinned_mode(self, who: Caller) -> str | None:
        return self.pinned or who.pinned

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        refuse_cursor(params)
        who = identify_caller(ctx, self.owner)
        watch = self.get_client_list(ctx, who)
        posture = await self.postures.get_for_display(who.principal)
        ready = self.listings.get_tools_list(who, watch.live.session, posture)
        watch.mark_listed(ready["tools"].keys)
        return ready

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        ending = await self.run_call(ctx, identify_caller(ctx, self.owner), params.name, params.arguments or {})
        return ending.answer if isinstance(ending, InputRequired) else result_from_ending(ending)

    async def answer_plain_call(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a call that only names a tool and its arguments, without the SDK's three passes over both.

        This stands behind the boundary that seals questions. A call with anything else in it takes the SDK's way.
        """
        params = ctx.params or {}
        if ctx.method != "tools/call" or ctx.request_id is None or not params.keys() <= PLAIN:
            return await call_next(mend_answers(ctx) if ctx.method in SEALED else ctx)
        name, arguments = params.get("name"), params.get("arguments")
        who = identify_caller(ctx, self.owner)
        fits = isinstance(name, str) and (arguments is None or isinstance(arguments, dict))
        if not (fits and who.ready and who.protocol.takes_our_results):
            return await call_next(ctx)
        ending = await self.run_call(ctx, who, cast(str, name), cast(dict[str, Any], arguments or {}))
        answer = ending.answer if isinstance(ending, InputRequired) else result_from_ending(ending)
        return shape_result(answer, who.protocol, self.listings.stamp)

    def _leave_for_door(self, ctx: Context, ready: dict[str, Any]) -> dict[str, Any]:
        who = identify_caller(ctx, self.owner)
        if who.protocol.connects or ctx.request_id is None:
            return ready
        return leave_answer(ctx.request, ctx.request_id, ready)

    async def run_call(
        self, ctx: Context, who: Caller, name: str, arguments: dict[str, Any], offer: bool = False
    ) -> Ending | InputRequired:
        """`offer`: what passes through is a resource or prompt of a server."""
        watch = self.get_client_list(ctx, who)
        if offer:
            open_every_mode(watch.live)

        async def announce_move(live: LiveSession, before: Session) -> None:
            # What the list shows depends on the posture, which may not be loaded yet.
            await self.postures.get_for_display(who.principal)
            await self.notices.announce_move(live, before, watch, make_aside_teller(ctx, who))

        client = ClientChannel(ctx, who, self.notices, self.patience)
        request = CallRequest(
            tool=name,
            arguments=arguments,
            live=watch.live,
            principal=who.principal,
            client=client,
            progress=ctx.session.report_progress,
            transport=who.transport,
            surface=observe_surface(who.transport, page=who.page, asks=client.can("elicitation")),
            moved=announce_move,
            turn=partial(watch.move_to, self.sessions),
            listing=watch,
            offer=offer,
            collect_meta=client.collect_meta,
        )
        try:
            return await self.pipeline.run(request)
        except InputRequired as waiting:
            return waiting
        except ClientUnsupported as unsupported:
            raise unsupported.error from None

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        who = identify_caller(ctx, self.owner)
        person = self.listings.keeps_prompts(who)
        answer = self.offers.list_prompts(params, person)
        more = await self.of_servers.list_entries("prompts", ctx, who) if person else []
        return {**answer, "prompts": [*answer["prompts"], *more]}

    async def list_resources(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        answer = self.offers.list_resources(params)
        more = await self.of_servers.list_entries("resources", ctx, identify_caller(ctx, self.owner))
        return {**answer, "resources": [*answer["resources"], *more]}

    async def list_templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        answer = self.offers.list_templates(params)
        more = await self.of_servers.list_entries("templates", ctx, identify_caller(ctx, self.owner))
        return {**answer, "resourceTemplates": [*answer["resourceTemplates"], *more]}

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        who = identify_caller(ctx, self.owner)
        live = self.get_client_list(ctx, who).live
        speaker = PromptCaller(
            who.principal,
            "" if live.passing else live.session.id,
            ClientChannel(ctx, who, self.notices, self.patience),
            self.listings.may_widen(who, get_client_version(ctx)),
        )
        try:
            if params.name not in self.offers.prompt_names:
                found = await self.of_servers.get_prompt(ctx, who, params)
                if found is not None:
                    return found
            return await self.offers.get_prompt(params, speaker, self.listings.keeps_prompts(who))
        except InputRequired as waiting:
            return waiting.answer
        except ClientUnsupported as unsupported:
            raise unsupported.error from None

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        who, uri = identify_caller(ctx, self.owner), str(params.uri)
        found = await self.offers.find_resource(uri, who.principal)
        return found if found is not None else await self.of_servers.read_resource(ctx, who, uri)

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        who = identify_caller(ctx, self.owner)
        theirs = await self.of_servers.complete(ctx, who, params)
        if theirs is not None:
            return {"completion": theirs, **COMPLETE}
        return await self.offers.complete(params, who.principal, self.listings.keeps_prompts(who))

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        wanted = params.notifications
        check_followable(wanted.resource_subscriptions or ())
        who = identify_caller(ctx, self.owner)
        watch = self.get_client_list(ctx, who)
        await self.postures.get_for_display(who.principal)
        followed = await self.of_servers.follow_all(ctx, who, watch, wanted.resource_subscriptions or ())
        if wanted.resource_subscriptions:
            wanted = wanted.model_copy(update={"resource_subscriptions": list(followed)})
        try:
            return await self.notices.listen(watch)(ctx, params.model_copy(update={"notifications": wanted}))
        finally:
            for unfollow in filter(None, followed.values()):
                await unfollow()

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Any:
        who, uri = identify_caller(ctx, self.owner), str(params.uri)
        watch = self.get_client_list(ctx, who)
        watch.follow_resource(uri)
        if uri not in watch.followed and self.server_offers.find_resource(uri) is not None:
            watch.followed[uri] = await self.of_servers.follow(ctx, who, watch, uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> Any:
        watch = self.get_client_list(ctx, identify_caller(ctx, self.owner))
        watch.uris.discard(str(params.uri))
        if unfollow := watch.followed.pop(str(params.uri), None):
            await unfollow()
        return types.EmptyResult()

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> Any:
        get_connection(ctx).state[LOG_LEVEL] = params.level
        return types.EmptyResult()

    async def answer_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Our outermost middleware: prepared lists, instructions per endpoint, and no exception text to the client."""
        try:
            if ctx.method == "tools/list" and ctx.request_id is not None and identify_caller(ctx, self.owner).ready:
                page = types.PaginatedRequestParams.model_validate(ctx.params or {}, by_name=False)
                return self._leave_for_door(ctx, await self.list_tools(ctx, page))
            answer = await call_next(ctx)
            if ctx.method in ("initialize", "server/discover") and isinstance(answer, dict):
                return answer | {
                    "instructions": self.instructions(self._get_pinned_mode(identify_caller(ctx, self.owner)))
                }
            return answer
        except MCPError as told:
            # Some errors repeat what was asked for.
            spoken = replace_half_surrogates({"message": told.error.message, "data": told.error.data})
            raise MCPError(told.error.code, **spoken) from told
        except Interruption:
            raise
        except ValidationError as wrong:
            # The SDK's own validation of parameters; its text repeats the body, which may be a secret or a megabyte.
            raise MCPError(INVALID_PARAMS, "Invalid request parameters") from wrong
        except (Exception, SystemExit) as fault:
            # In the legacy era the SDK would send the exception's text to the client.
            log.exception("a handler failed on %s", ctx.method)
            raise MCPError(INTERNAL_ERROR, "Internal server error") from fault


@dataclass
class Sealed:
    """The SDK's seal around what a question carries. Built on the first call: its keys would cost a server that is
    never called a megabyte and some milliseconds at start."""

    audience: str
    secret: bytes

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        return await (self._boundary(ctx, call_next) if ctx.method in SEALED else call_next(ctx))

    @cached_property
    def _boundary(self) -> RequestStateBoundary:
        return RequestStateBoundary(RequestStateSecurity(keys=[self.secret]), default_audience=self.audience)


def make_schema_lookup(get_tools: Callable[[], Mapping[str, Tool]]) -> Callable[[str], dict[str, Any] | None]:
    """Return the schemas of tools that want arguments repeated in headers; no other schema is needed before the
    gate."""
    known: tuple[Mapping[str, Tool], dict[str, Tool]] = ({}, {})

    def find_schema(name: str) -> dict[str, Any] | None:
        nonlocal known
        tools = get_tools()
        if tools is not known[0]:
            known = tools, {name: tool for name, tool in tools.items() if "x-mcp-header" in repr(tool.offered)}
        return dict(known[1][name].offered) if name in known[1] else None

    return find_schema


def build_server(
    front: Handlers, version: str, secret: bytes, watched: ServerMiddleware[Any] | None = None
) -> MenuServer:
    """`watched` is telemetry, outside of everything else; the SDK's own middleware is left out."""
    server = MenuServer(
        "menugate",
        version=version,
        title="menugate",
        instructions=front.instructions(front.pinned),
        get_tool_input_schema=front.schema_of,
        on_list_tools=front.list_tools,
        on_call_tool=front.call_tool,
        on_list_prompts=front.list_prompts,
        on_get_prompt=front.get_prompt,
        on_list_resources=front.list_resources,
        on_list_resource_templates=front.list_templates,
        on_read_resource=front.read_resource,
        on_completion=front.complete,
        on_subscriptions_listen=front.listen,
        on_subscribe_resource=front.subscribe,
        on_unsubscribe_resource=front.unsubscribe,
    )
    # Passed to the constructor, this handler would cause a warning about the revision that drops it.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, front.set_level)
    server.middleware[:] = [
        *([watched] if watched else []),
        front.answer_request,
        Sealed(server.name, secret),
        front.answer_plain_call,
    ]
    return server


def get_server_stamp(server: MenuServer) -> dict[str, Any]:
    """What the SDK writes into every modern result."""
    return {SERVER_INFO_META_KEY: server.server_info_stamp}
