"""How do the resources and prompts of servers look on the wire? As our own; what the SDK would refuse is left out."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.upstream_offers import PROMPT_META, ServerOffers
from mcp_server.model.results import Code, Ending, Problem, Refusal, Relayed
from mcp_server.policy.upstream_offers import OfferRoute
from mcp_server.wire.caller import Caller, Context
from mcp_server.wire.client import ClientChannel, InputRequired
from mcp_server.wire.notifications import ClientList
from mcp_server.wire.prompts import build_missing_resource_error
from mcp_server.wire.revisions import COMPLETE, UNCACHED
from mcp_server.wire.translate import replace_half_surrogates

if TYPE_CHECKING:
    from mcp_server.wire.server import Handlers

ENTRIES: Mapping[str, type[BaseModel]] = {
    "resources": types.Resource,
    "templates": types.ResourceTemplate,
    "prompts": types.Prompt,
}
AWAY = frozenset({Code.UPSTREAM_AWAY, Code.UPSTREAM_FAULT, Code.UPSTREAM_LOGIN, Code.TIMEOUT, Code.INTERNAL})
"""The request may well be answered later."""


def keep_sound_entries(kind: str, entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what would make the SDK refuse the whole list."""
    return [replace_half_surrogates(dict(entry)) for entry in entries if _is_sound(ENTRIES[kind], entry)]


def _is_sound(entry_type: type[BaseModel], entry: Mapping[str, Any]) -> bool:
    try:
        entry_type.model_validate(entry, by_name=False)
    except ValidationError:
        return False
    return True


def build_contents(ending: Ending) -> dict[str, Any]:
    """Turn the ending of a read into its result, or raise the error that it is."""
    blocks = get_blocks(ending)
    parts = [dict(block["resource"]) for block in blocks if isinstance(block.get("resource"), Mapping)]
    return replace_half_surrogates({**UNCACHED, **COMPLETE, "contents": parts})


def build_messages(ending: Ending) -> dict[str, Any]:
    blocks = get_blocks(ending)
    extra: Mapping[str, Any] = ending.extra if isinstance(ending, Relayed) else {}
    about: Mapping[str, Any] = extra.get(PROMPT_META, {})
    roles: list[Any] = about.get("roles", [])
    messages = [{"role": role, "content": dict(block)} for role, block in zip(roles, blocks, strict=False)]
    words = {"description": about["description"]} if isinstance(about.get("description"), str) else {}
    return replace_half_surrogates({**words, "messages": messages, **COMPLETE})


def get_blocks(ending: Ending) -> tuple[Mapping[str, Any], ...]:
    if isinstance(ending, Relayed):
        return ending.blocks
    if not isinstance(ending, Problem):
        raise MCPError(INVALID_PARAMS, ending.text)
    data: dict[str, Any] = {"menugate/refusal": {"code": str(ending.code), **(ending.data or {})}}
    raise MCPError(INTERNAL_ERROR if ending.code in AWAY else INVALID_PARAMS, ending.text, data)


def open_every_mode(live: LiveSession) -> LiveSession:
    """A client that keeps no session enters no mode, and has the resources and prompts of all."""
    if live.passing and not live.session.pinned:
        live.session = replace(live.session, flat=True)
    return live


@dataclass
class ServerOfferHandlers:
    """The requests about resources and prompts of servers."""

    front: "Handlers"
    offers: ServerOffers

    async def list_entries(self, kind: str, ctx: Context, who: Caller) -> list[dict[str, Any]]:
        if not self.offers.exist:
            return []
        live = open_every_mode(self.front.get_client_list(ctx, who).live)
        return keep_sound_entries(kind, await self.offers.list_all(kind, live))

    async def read_resource(self, ctx: Context, who: Caller, uri: str) -> dict[str, Any]:
        route = self.offers.find_resource(uri)
        if route is None:
            raise build_missing_resource_error(uri)
        return await self._run(ctx, who, route, build_contents)

    async def get_prompt(
        self, ctx: Context, who: Caller, params: types.GetPromptRequestParams
    ) -> dict[str, Any] | None:
        """Return None if no server has a prompt of that name for this client."""
        route = self.offers.find_prompt(params.name) if self.front.listings.keeps_prompts(who) else None
        if route is None:
            return None
        arguments = {**route.arguments, "arguments": dict(params.arguments or {})}
        return await self._run(ctx, who, replace(route, arguments=arguments), build_messages)

    async def _run(
        self, ctx: Context, who: Caller, route: OfferRoute, build: Callable[[Ending], dict[str, Any]]
    ) -> dict[str, Any]:
        ending = await self.front.run_call(ctx, who, route.tool.name, dict(route.arguments), offer=True)
        return ending.answer if isinstance(ending, InputRequired) else build(ending)

    async def complete(
        self, ctx: Context, who: Caller, params: types.CompleteRequestParams
    ) -> Mapping[str, Any] | None:
        ref = params.ref.model_dump(by_alias=True, mode="json")
        if not self.offers.exist or ("name" in ref and not self.front.listings.keeps_prompts(who)):
            return None
        more = params.model_dump(by_alias=True, mode="json", exclude_none=True, include={"argument", "context"})
        live = open_every_mode(self.front.get_client_list(ctx, who).live)
        try:
            return await self.offers.complete(ref, more, live, self._open_channel(ctx, who))
        except Refusal as refused:
            raise MCPError(INTERNAL_ERROR, refused.problem.message) from None

    async def follow(self, ctx: Context, who: Caller, watch: ClientList, uri: str) -> Callable[[], Awaitable[None]]:
        """Have a server watch one of its resources. Returns what ends that; raises if it may not be read from here."""
        live, channel = open_every_mode(watch.live), self._open_channel(ctx, who)
        try:
            if await self.offers.follow(uri, live, channel):
                return partial(self.offers.unfollow, uri, live, channel)
        except Refusal as refused:
            raise MCPError(INTERNAL_ERROR, refused.problem.message) from None
        raise build_missing_resource_error(uri)

    async def follow_all(
        self, ctx: Context, who: Caller, watch: ClientList, uris: Iterable[str]
    ) -> dict[str, Callable[[], Awaitable[None]] | None]:
        """Follow what may be followed. For what is not a server's, nothing has to be ended."""
        followed: dict[str, Callable[[], Awaitable[None]] | None] = {}
        for uri in uris:
            if self.offers.find_resource(uri) is None:
                followed[uri] = None
                continue
            with suppress(MCPError):
                followed[uri] = await self.follow(ctx, who, watch, uri)
        return followed

    def _open_channel(self, ctx: Context, who: Caller) -> ClientChannel:
        return ClientChannel(ctx, who, self.front.notices, self.front.patience)
