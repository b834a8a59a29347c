"""How does a process use a server that another process holds? Over a link to that process, as if it were the server.

A call that the holder had not yet passed on when it died did not run, so it is sent again, to the process that holds
the server then. A holder that does not answer counts as dead.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from mcp_server.model.upstreams import Mount, UpstreamCaller
from mcp_server.upstreams.connection import Connection
from mcp_server.upstreams.messages import BrokenMessage, Incoming, Link, LinkClosed, Message
from mcp_server.upstreams.peer import INVALID_REQUEST, Asked, Noticed, OpenRequest, UpstreamError
from mcp_server.upstreams.sharing.stream import MessageStream
from mcp_server.upstreams.sharing.words import ASKER, ASKS, CLOSED, PING, PONG, SENDING, SESSION, build_notice
from mcp_server.upstreams.subscriptions import LISTEN

PING_SECONDS = 1.0
SILENCE_SECONDS = 5.0
"""A holder that says nothing for so long is stopped, or as good as dead."""
SPARE_SECONDS = 0.2
"""If we were stopped ourselves, the answer may be there already."""
CANCEL_SECONDS = 1.0
HOLDER_ENDED = "the menugate process that ran it has ended"
HOLDER_SILENT = "the menugate process that runs it does not answer"


@dataclass(eq=False)
class GuestLink:
    stream: MessageStream
    _waiting: set[int] = field(default_factory=set[int])
    """Our requests that the holder has not answered yet."""
    _unsent: dict[int, "asyncio.Future[None]"] = field(default_factory=dict[int, "asyncio.Future[None]"])
    """Calls that the holder has not passed on yet."""
    _asked: anyio.Event = field(default_factory=anyio.Event)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        self.stream.send(message)
        id, method = message.get("id"), message.get("method")
        # Whoever listens for changes waits for ever, and needs no answer.
        if isinstance(id, int) and isinstance(method, str) and method != LISTEN:
            self._waiting.add(id)
            if SESSION in message["params"].get("_meta", {}):
                self._unsent[id] = asyncio.get_running_loop().create_future()
            self._asked.set()

    async def wait_until_passed_on(self, id: int) -> None:
        """Return when the call may run from now on; raise `LinkClosed` if it never will."""
        future = self._unsent.get(id)
        try:
            if future is not None:
                await future
        finally:
            self._unsent.pop(id, None)

    async def receive(self) -> Incoming:
        try:
            while True:
                item = await self.stream.receive()
                if isinstance(item, BrokenMessage) or self._is_for_peer(item):
                    return item
        except LinkClosed as closed:
            for future in self._unsent.values():
                if not future.done():
                    future.set_exception(closed)
            raise

    def _is_for_peer(self, item: Message) -> bool:
        method, id = item.get("method"), item.get("id")
        if method == SENDING:
            self._settle(item["params"]["id"])
        elif method == CLOSED:
            raise LinkClosed(str(item["params"].get("reason"))[:400])
        elif method is None and isinstance(id, int):
            self._waiting.discard(id)
            self._settle(id)
        return method not in (SENDING, PONG)

    def _settle(self, id: int) -> None:
        future = self._unsent.get(id)
        if future is not None and not future.done():
            future.set_result(None)

    async def watch_holder(self) -> None:
        """While we wait for answers, see to it that the holder is still there to give them."""
        while True:
            if not self._waiting:
                self._asked = anyio.Event()
                await self._asked.wait()
            heard = self.stream.heard = anyio.Event()
            try:
                self.stream.send(build_notice(PING))
            except LinkClosed:
                return
            with anyio.move_on_after(SILENCE_SECONDS):
                await heard.wait()
            if not heard.is_set():
                await anyio.sleep(SPARE_SECONDS)
            if not heard.is_set():
                self.stream.end(HOLDER_SILENT)
                return
            await anyio.sleep(PING_SECONDS)


@asynccontextmanager
async def open_guest_link(stream: MessageStream) -> AsyncGenerator[GuestLink, None]:
    """`stream`: to a holder that has proved itself."""
    stream.reason = HOLDER_ENDED
    link = GuestLink(stream)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.watch_holder)
            try:
                yield link
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await stream.close()


@dataclass(eq=False)
class GuestConnection(Connection):
    """A connection through a holder, which knows whose call asks, and whose turn it is."""

    async def send_call(
        self, method: str, params: Mapping[str, Any], caller: UpstreamCaller, more: Mapping[str, str]
    ) -> OpenRequest:
        marked = {**params, "_meta": {**params.get("_meta", {}), SESSION: caller.session}}
        request = await super().send_call(method, marked, caller, more)
        try:
            await cast(GuestLink, self.link).wait_until_passed_on(request.id)
        except LinkClosed:
            self.finish(request)
            raise
        except BaseException:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True):
                await self.cancel(request, "the client cancelled the call")
            raise
        return request

    def _hand_over(self, asked: Asked) -> None:
        self.note_asking()  # in case this process holds the server later
        extra = dict(asked.params.get("_meta") or {})
        asker = extra.pop(ASKER, None)
        params = {key: value for key, value in asked.params.items() if key != "_meta"}
        asked = Asked(asked.id, asked.method, {**params, "_meta": extra} if extra else params)
        request = next((one for one in self.calls if one.id == asker), None)
        if request is None:
            self.peer.reply_soon(asked, UpstreamError(INVALID_REQUEST, "the call that asks has ended"))
            return
        self.waiting.add(request)
        request.put(asked)

    def _take_notice(self, notice: Noticed) -> None:
        if notice.method == ASKS:
            self.note_asking()
        else:
            super()._take_notice(notice)


def build_connection(mount: Mount, link: Link, workspace: str, on_updated: Callable[[str], None]) -> Connection:
    kind = GuestConnection if isinstance(link, GuestLink) else Connection
    return kind(mount, link, workspace, on_updated)
