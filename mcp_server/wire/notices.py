"""Who has to be told that a list changed, and how long does `menu_enter` wait for them to look?

Hosts that list again start doing so a few milliseconds after the notice, but build their next request to the model at
the same moment. So the notice goes out first, and the answer to `menu_enter` is held until the new list was fetched,
half a second at most. A client that let the half second pass once is not waited for again.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import ToolListChangedNotification

from mcp_server.calls.sessions import Seat
from mcp_server.wire.caller import Caller, Context, connection
from mcp_server.wire.listings import CHANGING, Listings

PATIENCE = 0.5
"""Seconds; the slowest host measured lists again after 0.37."""
AFTERTHOUGHT = 0.05
"""Seconds between the new list going out and the answer: the host has to take it in."""
EVENTS: dict[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
MOST_STREAMS = 2000


@dataclass(eq=False)
class Watch:
    """One client's list: when it was last fetched, and whether it is worth waiting for."""

    client: str
    principal: str
    seat: Seat
    tell: Callable[[str, str], Awaitable[None]] | None = None
    """How a legacy connection is told; None where only listen streams are."""
    uris: set[str] = field(default_factory=set[str])
    relists: bool | None = None
    awaited: anyio.Event | None = None
    """Somebody waits for the list to be fetched."""

    def listed(self) -> None:
        if self.awaited is not None:
            self.awaited.set()


class Notices:
    def __init__(self, listings: Listings) -> None:
        self._listings = listings
        self._watches: set[Watch] = set()
        self._buses: dict[str, InMemorySubscriptionBus] = {}
        self._listens: dict[str, ListenHandler] = {}
        self._learned: dict[str, bool] = {}

    def watch(self, watch: Watch) -> Watch:
        host = self._listings.hosts.named(watch.client)
        watch.relists = host.relists if host else self._learned.get(watch.client)
        self._watches.add(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        self._watches.discard(watch)

    async def moved(self, seat: Seat, caller: Caller, ctx: Context, watch: Watch | None) -> None:
        """Tell everybody who looks at this seat, on both channels, and wait for the one who asked."""
        mine = watch if watch is not None and watch.seat is seat else None
        for other in [one for one in self._watches if one.seat is seat]:
            await self._tell(other, "tools", "")
        if mine is None or self._listings.face(caller) not in CHANGING:
            return
        if not caller.modern and caller.transport != "stdio":
            # Without an open GET stream the notice above is lost; this one rides on the answer's own stream.
            await ctx.session.send_notification(ToolListChangedNotification(), related_request_id=ctx.request_id)
        await self._settle(mine)

    async def posture_changed(self, seats: list[Seat] | None = None) -> None:
        """Something changed behind these seats' backs (None: behind everybody's)."""
        for watch in list(self._watches):
            if seats is None or watch.seat in seats:
                await self._tell(watch, "tools", "")
        if seats is None:
            for bus in self._buses.values():
                await bus.publish(ToolsListChanged())

    async def changed(self, principal: str, what: str, uri: str) -> None:
        for watch in list(self._watches):
            if watch.principal == principal and watch.tell is not None:
                await self._tell(watch, what, uri)
        await self.bus(principal).publish(ResourceUpdated(uri) if what == "resource" else EVENTS[what]())

    def bus(self, principal: str) -> InMemorySubscriptionBus:
        return self._buses.setdefault(principal, InMemorySubscriptionBus())

    def listen(self, principal: str) -> ListenHandler:
        """A bus has no idea of who may hear what, so every principal has one of its own."""
        handler = self._listens.get(principal)
        if handler is None:
            handler = self._listens[principal] = ListenHandler(self.bus(principal), max_subscriptions=MOST_STREAMS)
        return handler

    def close(self) -> None:
        """End the open listen streams: one that stays open keeps the server from stopping."""
        for handler in self._listens.values():
            handler.close()

    async def _tell(self, watch: Watch, what: str, uri: str) -> None:
        if watch.tell is not None:
            if what != "resource" or uri in watch.uris:
                await watch.tell(what, uri)
        elif what == "tools":
            await self.bus(watch.principal).publish(ToolsListChanged())

    async def _settle(self, watch: Watch) -> None:
        if watch.relists is False:
            return
        watch.awaited = anyio.Event()
        with anyio.move_on_after(PATIENCE) as patience:
            await watch.awaited.wait()
        watch.relists = not patience.cancelled_caught
        if watch.client and not self._listings.hosts.named(watch.client):
            self._learned[watch.client] = watch.relists
        if watch.relists:
            await anyio.sleep(AFTERTHOUGHT)


def teller(ctx: Context) -> Callable[[str, str], Awaitable[None]]:
    """How one legacy connection is told, later and from anywhere. Never raises: a closed one is told nothing."""
    link = connection(ctx)

    async def tell(what: str, uri: str) -> None:
        match what:
            case "tools":
                await link.send_tool_list_changed()
            case "prompts":
                await link.send_prompt_list_changed()
            case "resources":
                await link.send_resource_list_changed()
            case _:
                await link.send_resource_updated(uri)

    return tell
