"""How do other processes get at a server that this process runs? Through a socket, as long as it runs.

Guests may come while the server still starts; they wait for it then, instead of starting one of their own.
"""

import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from mcp_server.model.context import Client
from mcp_server.upstreams.connection import Connection
from mcp_server.upstreams.messages import Incoming, Link, LinkClosed, Message
from mcp_server.upstreams.peer import Noticed
from mcp_server.upstreams.sharing.greeting import GREETING_SECONDS, NotProven, greet_guest
from mcp_server.upstreams.sharing.guest import HOLDER_ENDED
from mcp_server.upstreams.sharing.key import ShareKey
from mcp_server.upstreams.sharing.place import accept, is_same_account
from mcp_server.upstreams.sharing.relay import GuestRelay, RelayedInstance
from mcp_server.upstreams.sharing.stream import MessageStream

if TYPE_CHECKING:
    from mcp_server.upstreams.instance import UpstreamInstance

MAX_GUESTS = 64
AGAIN_SECONDS = 0.1
FAREWELL_SECONDS = 0.3

log = logging.getLogger("menugate")


@dataclass(eq=False)
class GuestDoor:
    """Lets guests in that can read the account's key."""

    listening: socket.socket
    key: ShareKey
    digest: str
    mount: str
    principal: str
    client: Client
    reason: str = HOLDER_ENDED
    """Why the instance ended, for the guests."""
    _shared: RelayedInstance | None = None
    _opened: anyio.Event = field(default_factory=anyio.Event)
    _guests: dict[MessageStream, GuestRelay | None] = field(default_factory=dict[MessageStream, GuestRelay | None])
    _count: int = 0
    _accepting: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            with self._accepting:
                while True:
                    try:
                        self._admit(await accept(self.listening), tasks)
                    except OSError:
                        await anyio.sleep(AGAIN_SECONDS)

    def _admit(self, arrived: socket.socket, tasks: TaskGroup) -> None:
        if len(self._guests) >= MAX_GUESTS or not is_same_account(arrived):
            arrived.close()
            return
        stream = MessageStream.open(arrived)
        self._guests[stream] = None
        tasks.start_soon(self._serve_guest, stream)

    async def _serve_guest(self, stream: MessageStream) -> None:
        """Whatever a guest does, it harms neither the instance nor the other guests."""
        try:
            await self._greet_and_serve(stream)
        except Exception as error:
            log.debug("a guest of the server %s failed", self.mount, exc_info=error)
        finally:
            self._guests.pop(stream, None)
            with anyio.CancelScope(shield=True):
                await stream.close()

    async def _greet_and_serve(self, stream: MessageStream) -> None:
        try:
            with anyio.fail_after(GREETING_SECONDS):
                pid = await greet_guest(stream, self.key, self.digest)
        except NotProven as wrong:
            log.warning("a process wanted to use the running server %s and was turned away: %s", self.mount, wrong)
            return
        except (LinkClosed, TimeoutError):
            return
        self._count += 1
        name = f"guest {self._count} ({pid})"
        relay = GuestRelay(name, stream, self.principal, self.client, self._wait_for_instance)
        self._guests[stream] = relay
        await relay.serve()

    async def _wait_for_instance(self) -> RelayedInstance:
        await self._opened.wait()
        assert self._shared is not None
        return self._shared

    def open(self, instance: "UpstreamInstance", connection: Connection) -> None:
        """The server runs, and guests can use it from now on."""
        self._shared = RelayedInstance(instance, connection)
        connection.watchers.append(self._pass_on)
        connection.on_first_question.append(self._tell_that_it_asks)
        self._opened.set()

    def _pass_on(self, notice: Noticed) -> None:
        for relay in list(self._guests.values()):
            if relay is not None:
                relay.take_notice(notice)

    def _tell_that_it_asks(self) -> None:
        for relay in list(self._guests.values()):
            if relay is not None:
                relay.tell_that_it_asks()

    async def close(self) -> None:
        """Let nobody in any more, and tell the guests why."""
        self._accepting.cancel()
        if self._shared is not None and (ended := self._shared.connection.peer.ended) is not None:
            self.reason = str(ended)
        for relay in list(self._guests.values()):
            if relay is not None:
                relay.end(self.reason)
        with anyio.move_on_after(FAREWELL_SECONDS, shield=True):
            for stream in list(self._guests):
                await stream.flush()
        for stream in list(self._guests):
            stream.end(self.reason)


@dataclass(frozen=True, eq=False)
class HeldLink:
    """The link to a server that this process runs for others as well."""

    link: Link
    door: GuestDoor

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        await self.link.send(message, headers)

    async def receive(self) -> Incoming:
        try:
            return await self.link.receive()
        except LinkClosed as closed:
            self.door.reason = str(closed)
            raise


def open_to_guests(link: Link, instance: "UpstreamInstance", connection: Connection) -> None:
    """Let other processes use the instance from now on, if they may."""
    if isinstance(link, HeldLink):
        link.door.open(instance, connection)
