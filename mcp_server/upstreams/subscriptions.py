"""How does a server tell us of changes by itself? By one open request, or, on older revisions, resource by resource."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from mcp_server.upstreams.catalogue import LISTS
from mcp_server.upstreams.connection import Connection
from mcp_server.upstreams.messages import LinkClosed
from mcp_server.upstreams.peer import METHOD_NOT_FOUND, Answered, Failed, OpenRequest, UpstreamError

LISTEN = "subscriptions/listen"
AGAIN_SECONDS = 1.0
"""Before listening again when the server ended it."""
FILTERS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
"""By what a server declares: how we ask for its changes."""


@dataclass
class Subscriptions:
    """Keeps one connection subscribed to what is wanted."""

    connection: Connection
    wanted: Collection[str]
    """The URIs to watch; changes while this runs."""
    _watched: set[str] = field(default_factory=set[str])

    async def keep(self) -> None:
        try:
            await (self._listen() if self.connection.agreement.modern else self._subscribe())
        except LinkClosed:
            return

    async def _subscribe(self) -> None:
        while True:
            self.connection.resubscribe = anyio.Event()
            wanted = set(self.wanted)
            for method, uris in (
                ("resources/unsubscribe", self._watched - wanted),
                ("resources/subscribe", wanted - self._watched),
            ):
                for uri in uris:
                    try:
                        await self.connection.peer.ask(method, *self.connection.agreement.stamp(method, {"uri": uri}))
                    except UpstreamError as error:
                        self.connection.peer.faults[f"`{method}` failed: {error.message[:100]}"] += 1
            self._watched = wanted
            self.connection.note_watched(wanted)
            await self.connection.resubscribe.wait()

    async def _listen(self) -> None:
        while True:
            self.connection.resubscribe = anyio.Event()
            wanted = self._build_filter()
            if wanted and not await self._listen_once(wanted):
                return
            if not wanted:
                await self.connection.resubscribe.wait()

    def _build_filter(self) -> dict[str, Any]:
        declared = self.connection.agreement.capabilities
        found: dict[str, Any] = {
            key: True
            for name, key in FILTERS.items()
            if isinstance(ability := declared.get(name), dict) and cast(dict[str, Any], ability).get("listChanged")
        }
        if self.wanted:
            found["resourceSubscriptions"] = sorted(self.wanted)
        return found

    async def _listen_once(self, wanted: dict[str, Any]) -> bool:
        """Listen until the server ends it or something else is wanted. Returns False if the server cannot listen."""
        peer = self.connection.peer
        request = await peer.send_request(LISTEN, *self.connection.agreement.stamp(LISTEN, {"notifications": wanted}))
        ended: UpstreamError | LinkClosed | None = None
        async with anyio.create_task_group() as tasks:

            async def wait_for_wish() -> None:
                await self.connection.resubscribe.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_wish)
            ended = await _wait_for_end(request)
            tasks.cancel_scope.cancel()
        if isinstance(ended, LinkClosed):
            raise ended
        if isinstance(ended, UpstreamError) and ended.code == METHOD_NOT_FOUND:
            return False
        if self.connection.resubscribe.is_set():
            await peer.cancel(request, "other changes are wanted", {})
        else:
            await anyio.sleep(AGAIN_SECONDS)
            # What changed in between was not announced.
            self.connection.mark_stale(LISTS, announced=False)
        return True


async def _wait_for_end(request: OpenRequest) -> UpstreamError | LinkClosed | None:
    while True:
        match await request.get():
            case Answered():
                return None
            case Failed(error):
                return error
            case _:
                pass
