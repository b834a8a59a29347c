"""Who must be told that a list changed, and how long does `menu_enter` wait for them to fetch it?

Hosts that fetch the list again start a few milliseconds after the notification, but build their next request to the
model at the same moment. So the notification goes out first, and the answer to `menu_enter` waits until the new list
was fetched, half a second at most. A client that once let the half second pass is not waited for again.
"""

from collections.abc import Awaitable, Callable, Collection, Generator
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

AFTERTHOUGHT = 0.05
"""Seconds between sending the new list and the answer: the host has to take the list in."""
EVENTS: dict[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
Ear: TypeAlias = tuple[str, str | None]
MOST_STREAMS = 2000
MOST_LEARNED = 1000
MOST_FOLLOWED = 1000
LONGEST_URI = 2000
TELLING = 1.0
"""Seconds a client has to read a notification."""


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
    relists: bool | None = None
    quiet: bool = False
    """List changes go only to listen streams, because a notification would harm this client."""
    shows: tuple[str, ...] | None = None
    """The tools on the list that the client knows or was told to fetch; None while it knows none."""
    awaited: set[anyio.Event] = field(default_factory=set[anyio.Event])
    """One event for each call that waits for the list to be fetched."""

    @property
    def fixed(self) -> bool:
        return is_fixed(self.face, self.live.session, self.relists)

    @property
    def carriers(self) -> bool:
        return has_carriers(self.face, self.live.session)

    @property
    def audience(self) -> Ear:
        """Key of those who hear the same over listen streams: the principal, and the endpoint's mode."""
        return self.principal, self.live.session.mode if self.live.session.pinned else None

    def mark_listed(self, shows: tuple[str, ...]) -> None:
        self.shows = shows
        for event in self.awaited:
            event.set()

    def move_to(self, sessions: Sessions, live: LiveSession) -> Session | None:
        """Switch the connection to that place of its session. Returns where it was; None if it stays."""
        here = self.live
        if live is here or live.session.id != here.session.id:
            return None
        self.live = sessions.switch(here, live)
        return here.session

    def follow_resource(self, uri: str) -> None:
        check_followable({*self.uris, uri})
        self.uris.add(uri)


def check_followable(uris: Collection[str]) -> None:
    """Refuse too much: what a client follows is kept as long as it stays."""
    if len(uris) > MOST_FOLLOWED or any(len(uri) > LONGEST_URI for uri in uris):
        limits = f"{MOST_FOLLOWED} resources, whose addresses have at most {LONGEST_URI} characters"
        raise MCPError(
            INVALID_PARAMS, f"one client can follow at most {limits}; unsubscribe from what you need no more"
        )


class Notifier:
    def __init__(self, listings: Listings, posture: Callable[[str], Posture], patience: float) -> None:
        self._listings = listings
        self._posture = posture
        self._patience = patience
        self._watches: set[ClientList] = set()
        self._standing: dict[Ear, ClientList] = {}
        self._buses: dict[Ear, InMemorySubscriptionBus] = {}
        self._listens: dict[Ear, ListenHandler] = {}
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
        """Notify everybody whose list changed, and wait for the caller to fetch it. `aside` notifies the caller once
        more, on the stream of its own answer, because no other stream may reach it."""
        seeing = [one for one in self._watches if one.live is live and self._has_list_changed(one, before)]
        if watch not in seeing:
            await self._tell(seeing)
            return
        # Created before anybody is notified: a quick client fetches its list before we know that the notification is
        # out.
        fetched = anyio.Event()
        watch.awaited.add(fetched)
        try:
            await self._tell(seeing)
            if aside is not None and not watch.quiet:
                await aside()
            await self._wait_for_fetch(watch, fetched)
        finally:
            watch.awaited.discard(fetched)

    async def announce_outside_changes(
        self, live_sessions: Collection[LiveSession], principals: Collection[str]
    ) -> None:
        """Notify about live sessions and postures that changed outside of a call."""
        affected = [one for one in self._watches if one.live in live_sessions or one.principal in principals]
        await self._tell([one for one in affected if self._has_list_changed(one)])

    async def announce_change(self, principal: str, what: str, uri: str) -> None:
        connected = [one for one in self._watches if one.principal == principal and one.tell is not None]
        await self._tell(connected, what, uri)
        event = ResourceUpdated(uri) if what == "resource" else EVENTS[what]()
        for ear in [one for one in self._buses if one[0] == principal]:
            await self._buses[ear].publish(event)

    def listen(self, watch: ClientList) -> ListenHandler:
        """Return the listen handler for this audience. A bus does not know who may hear what, so each audience has its
        own. `watch` stands for all who listen to that list over connections that keep no session."""
        if watch not in self._watches and watch.audience not in self._standing:
            watch.shows = self._listings.get_tool_names(watch.face, watch.live.session, self._posture(watch.principal))
            self._watches.add(watch)
            self._standing[watch.audience] = watch
        handler = self._listens.get(watch.audience)
        if handler is None:
            bus = self._buses[watch.audience] = InMemorySubscriptionBus()
            handler = self._listens[watch.audience] = ListenHandler(bus, max_subscriptions=MOST_STREAMS)
        return handler

    def close(self) -> None:
        """End the open listen streams and dialogs: one that stays open keeps the server from stopping."""
        self._closed = True
        for handler in self._listens.values():
            handler.close()
        for dialog in tuple(self._dialogs):
            dialog.cancel()

    @contextmanager
    def open_dialog(self) -> Generator[anyio.CancelScope, None, None]:
        """Keep the scope of a question to a legacy client. It is cancelled on shutdown while its stream is still open,
        because the SDK would later wait for its reader, for seconds."""
        with anyio.CancelScope() as scope:
            self._dialogs.add(scope)
            if self._closed:
                scope.cancel()
            try:
                yield scope
            finally:
                self._dialogs.discard(scope)

    def _has_list_changed(self, watch: ClientList, before: Session | None = None) -> bool:
        """True if the list shows anything else than before. The new list then counts as shown, because the client is
        told now."""
        posture = self._posture(watch.principal)
        was = watch.shows
        if was is None and before is not None:
            was = self._listings.get_tool_names(watch.face, before, posture)
        watch.shows = self._listings.get_tool_names(watch.face, watch.live.session, posture)
        return watch.shows != was

    async def _tell(self, watches: Collection[ClientList], what: str = "tools", uri: str = "") -> None:
        async with anyio.create_task_group() as group:
            for watch in watches:
                wanted = uri in watch.uris if what == "resource" else not watch.quiet
                if watch.tell is not None and wanted:
                    group.start_soon(_tell_client, watch.tell, what, uri)
        for ear in {watch.audience for watch in watches if watch.tell is None} & self._buses.keys():
            await self._buses[ear].publish(EVENTS[what]())

    async def _wait_for_fetch(self, watch: ClientList, fetched: anyio.Event) -> None:
        if watch.relists is False or watch.quiet:
            return
        with anyio.move_on_after(self._patience) as patience:
            await fetched.wait()
        watch.relists = not patience.cancelled_caught
        if watch.client and not self._listings.hosts.find_host(watch.client):
            if len(self._learned) >= MOST_LEARNED:
                self._learned.clear()
            self._learned[watch.client] = watch.relists
        if watch.relists:
            await anyio.sleep(AFTERTHOUGHT)


async def _tell_client(tell: Callable[[str, str], Awaitable[None]], what: str, uri: str) -> None:
    """Do not wait for a client that does not read its stream: the others must hear of the change, too."""
    with anyio.move_on_after(TELLING):
        await tell(what, uri)


def make_teller(ctx: Context) -> Callable[[str, str], Awaitable[None]]:
    """Return how to notify a legacy connection, later and from anywhere. Never raises: a closed one is told nothing."""
    link = get_connection(ctx)

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


def make_aside_teller(ctx: Context, who: Caller) -> Callable[[], Awaitable[None]] | None:
    """Over HTTP a legacy client hears notifications on a stream that it may not have opened. The answer to its own
    request is a stream too, and always there."""
    if who.modern or who.transport != "http":
        return None

    async def send_list_changed() -> None:
        await ctx.session.send_notification(ToolListChangedNotification(), related_request_id=ctx.request_id)

    return send_list_changed
