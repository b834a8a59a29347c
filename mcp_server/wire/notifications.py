"""Who is notified that a list changed, and how long does `menu_enter` wait for them to fetch it?

A host that fetches the list again starts a few milliseconds after the notification, and builds its next request to the
model at the same moment. So the notification goes out first, and the answer to `menu_enter` waits until the new list
was fetched, half a second at most. A client that once let the half second pass is not waited for again.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import INVALID_PARAMS, ToolListChangedNotification

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.sessions import Sessions
from mcp_server.model.menus import Listing
from mcp_server.model.posture import Posture
from mcp_server.model.sessions import Session
from mcp_server.wire.caller import Caller, Context, get_connection
from mcp_server.wire.listings import Listings, has_carriers, is_fixed

SETTLE_SECONDS = 0.05
"""The time between the new list and the answer, in which the host processes the list."""
EVENTS: dict[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
Audience: TypeAlias = tuple[str, str | None]
MAX_STREAMS = 2000
MAX_LEARNED = 1000
MAX_FOLLOWED = 1000
MAX_URI_CHARS = 2000
SEND_SECONDS = 1.0
"""The time a client has to read a notification."""


@dataclass(eq=False)
class ClientList:
    """One client's list: what it shows, and whether to wait until the client fetches it."""

    client: str
    principal: str
    live: LiveSession
    face: Listing
    tell: Callable[[str, str], Awaitable[None]] | None = None
    """Notifies a legacy connection; None if there are only listen streams."""
    uris: set[str] = field(default_factory=set[str])
    followed: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict[str, Callable[[], Awaitable[None]]])
    """Resources of servers that these watch for the client, with what ends that."""
    relists: bool | None = None
    quiet: bool = False
    """List changes go only to listen streams, because a notification would harm this client."""
    shows: tuple[str, ...] | None = None
    """The tools on the list that the client knows or was told to fetch; None while it knows none."""
    offers: Mapping[str, int] | None = None
    """What tells the resources and the prompts of servers from others that the client knows."""
    fetch_events: set[anyio.Event] = field(default_factory=set[anyio.Event])
    """One for each call that waits for the list to be fetched."""

    @property
    def fixed(self) -> bool:
        return is_fixed(self.face, self.live.session, self.relists)

    @property
    def carriers(self) -> bool:
        return has_carriers(self.face, self.live.session)

    @property
    def audience(self) -> Audience:
        """Who gets the same events over listen streams: the principal, and the endpoint's mode."""
        return self.principal, self.live.session.mode if self.live.session.pinned else None

    def mark_listed(self, shows: tuple[str, ...]) -> None:
        self.shows = shows
        for event in self.fetch_events:
            event.set()

    def move_to(self, sessions: Sessions, live: LiveSession) -> Session | None:
        """Switch the connection to that place of its session. Returns where it was; None if it stays."""
        current = self.live
        if live is current or live.session.id != current.session.id:
            return None
        self.live = sessions.switch(current, live)
        return current.session

    def follow_resource(self, uri: str) -> None:
        check_followable({*self.uris, uri})
        self.uris.add(uri)


def check_followable(uris: Collection[str]) -> None:
    """Limit what is kept for as long as a client stays connected."""
    if len(uris) > MAX_FOLLOWED or any(len(uri) > MAX_URI_CHARS for uri in uris):
        limits = f"{MAX_FOLLOWED} resources, with addresses of at most {MAX_URI_CHARS} characters"
        raise MCPError(INVALID_PARAMS, f"a client can follow at most {limits}; unsubscribe from some first")


class Notifier:
    def __init__(self, listings: Listings, posture: Callable[[str], Posture], patience: float) -> None:
        self._listings = listings
        self._posture = posture
        self._patience = patience
        self._watches: set[ClientList] = set()
        self._listeners: dict[Audience, ClientList] = {}
        self._buses: dict[Audience, InMemorySubscriptionBus] = {}
        self._listens: dict[Audience, ListenHandler] = {}
        self._learned: dict[str, bool] = {}
        self._dialogs: set[anyio.CancelScope] = set()
        self._closed = False

    def watch(self, watch: ClientList) -> ClientList:
        host = self._listings.hosts.find_host(watch.client)
        watch.relists = host.relists if host else self._learned.get(watch.client)
        watch.quiet = host is not None and not host.notices
        self._watches.add(watch)
        return watch

    def unwatch(self, watch: ClientList) -> None:
        self._watches.discard(watch)

    async def announce_move(
        self, live: LiveSession, before: Session, watch: ClientList, aside: Callable[[], Awaitable[None]] | None
    ) -> None:
        """Notify every client whose list changed, and wait for the caller to fetch its own. `aside` notifies the caller
        again on the stream of its answer, because it may have no other one."""
        here = [other for other in self._watches if other.live is live]
        affected = [other for other in here if self._has_list_changed(other, before)]
        await self._notify_of_offers(here, before)
        if watch not in affected:
            await self._notify(affected)
            return
        # Created before the notification, because a quick client fetches its list before sending has returned.
        fetched = anyio.Event()
        watch.fetch_events.add(fetched)
        try:
            await self._notify(affected)
            if aside is not None and not watch.quiet:
                await aside()
            await self._wait_for_fetch(watch, fetched)
        finally:
            watch.fetch_events.discard(fetched)

    async def announce_outside_changes(
        self, live_sessions: Collection[LiveSession], principals: Collection[str]
    ) -> None:
        """Notify about sessions and postures that changed outside a call."""
        affected = [one for one in self._watches if one.live in live_sessions or one.principal in principals]
        await self._notify([one for one in affected if self._has_list_changed(one)])
        await self._notify_of_offers(affected)

    async def announce_change(self, principal: str, what: str, uri: str) -> None:
        connected = [one for one in self._watches if one.principal == principal and one.tell is not None]
        await self._notify(connected, what, uri)
        event = ResourceUpdated(uri) if what == "resource" else EVENTS[what]()
        for audience in [one for one in self._buses if one[0] == principal]:
            await self._buses[audience].publish(event)

    def listen(self, watch: ClientList) -> ListenHandler:
        """Return the listen handler of this audience. Each has its own bus, because a bus does not check who may hear
        what. `watch` represents all who listen to this list over connections without a session."""
        if watch not in self._watches and watch.audience not in self._listeners:
            watch.shows = self._listings.get_list_keys(watch.face, watch.live.session, self._posture(watch.principal))
            self._watches.add(watch)
            self._listeners[watch.audience] = watch
        handler = self._listens.get(watch.audience)
        if handler is None:
            bus = self._buses[watch.audience] = InMemorySubscriptionBus()
            handler = self._listens[watch.audience] = ListenHandler(bus, max_subscriptions=MAX_STREAMS)
        return handler

    def close(self) -> None:
        """End the listen streams and dialogs, which would keep the server from stopping."""
        self._closed = True
        for handler in self._listens.values():
            handler.close()
        for dialog in tuple(self._dialogs):
            dialog.cancel()

    @contextmanager
    def open_dialog(self) -> Generator[anyio.CancelScope, None, None]:
        """Yield the scope of a question to a legacy client. On shutdown it is cancelled while its stream is still open,
        because otherwise the SDK waits seconds for its reader."""
        with anyio.CancelScope() as scope:
            self._dialogs.add(scope)
            if self._closed:
                scope.cancel()
            try:
                yield scope
            finally:
                self._dialogs.discard(scope)

    def _has_list_changed(self, watch: ClientList, before: Session | None = None) -> bool:
        """True if the list changed. The new one then counts as shown, because the client is notified now."""
        posture = self._posture(watch.principal)
        shown_before = watch.shows
        if shown_before is None and before is not None:
            shown_before = self._listings.get_list_keys(watch.face, before, posture)
        watch.shows = self._listings.get_list_keys(watch.face, watch.live.session, posture)
        return watch.shows != shown_before

    async def _notify_of_offers(self, watches: Collection[ClientList], before: Session | None = None) -> None:
        for watch in watches:
            posture, session = self._posture(watch.principal), watch.live.session
            known = watch.offers
            if known is None and before is not None:
                known = self._listings.get_offer_keys(watch.client, before, posture)
            watch.offers = self._listings.get_offer_keys(watch.client, session, posture)
            for what, key in watch.offers.items():
                if key != (known or {}).get(what, 0):
                    await self._notify([watch], what)

    async def _notify(self, watches: Collection[ClientList], what: str = "tools", uri: str = "") -> None:
        async with anyio.create_task_group() as group:
            for watch in watches:
                is_recipient = uri in watch.uris if what == "resource" else not watch.quiet
                if watch.tell is not None and is_recipient:
                    group.start_soon(_tell_client, watch.tell, what, uri)
        for audience in {watch.audience for watch in watches if watch.tell is None} & self._buses.keys():
            await self._buses[audience].publish(EVENTS[what]())

    async def _wait_for_fetch(self, watch: ClientList, fetched: anyio.Event) -> None:
        if watch.relists is False or watch.quiet:
            return
        with anyio.move_on_after(self._patience) as patience:
            await fetched.wait()
        watch.relists = not patience.cancelled_caught
        if watch.client and not self._listings.hosts.find_host(watch.client):
            if len(self._learned) >= MAX_LEARNED:
                self._learned.clear()
            self._learned[watch.client] = watch.relists
        if watch.relists:
            await anyio.sleep(SETTLE_SECONDS)


async def _tell_client(tell: Callable[[str, str], Awaitable[None]], what: str, uri: str) -> None:
    """Send for a limited time: a client that does not read its stream must not delay the others."""
    with anyio.move_on_after(SEND_SECONDS):
        await tell(what, uri)


def make_teller(ctx: Context) -> Callable[[str, str], Awaitable[None]]:
    """Make a function that notifies a legacy connection at any time; it does nothing once the connection is closed."""
    connection = get_connection(ctx)

    async def tell(what: str, uri: str) -> None:
        match what:
            case "tools":
                await connection.send_tool_list_changed()
            case "prompts":
                await connection.send_prompt_list_changed()
            case "resources":
                await connection.send_resource_list_changed()
            case _:
                await connection.send_resource_updated(uri)

    return tell


def make_aside_teller(ctx: Context, who: Caller) -> Callable[[], Awaitable[None]] | None:
    """Over HTTP a legacy client gets notifications on a stream that it may not have opened. The answer to its request
    is a stream too, and always open."""
    if not who.protocol.connects or who.transport != "http":
        return None

    async def send_list_changed() -> None:
        await ctx.session.send_notification(ToolListChangedNotification(), related_request_id=ctx.request_id)

    return send_list_changed
