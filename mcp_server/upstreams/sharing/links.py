"""Does this process run a server itself, or use the one that another process of this account runs?

Whoever needs an instance first holds it. Only calls with the very same definition share it: the program, its arguments,
variables and folder. Whatever goes wrong with sharing, the process runs an instance of its own.
"""

import logging
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

import mcp_server
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.upstream import UpstreamNotStarted, find_upstream_program
from mcp_server.model.context import Client
from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import Mount, Serve, StdioTarget
from mcp_server.upstreams.links import LinkOpener
from mcp_server.upstreams.messages import Link, LinkClosed
from mcp_server.upstreams.packages.start import find_started
from mcp_server.upstreams.sharing.confinement import describe_confinement
from mcp_server.upstreams.sharing.greeting import GREETING_SECONDS
from mcp_server.upstreams.sharing.guest import HOLDER_SILENT, GuestLink, open_guest_link
from mcp_server.upstreams.sharing.holder import GuestDoor, HeldLink
from mcp_server.upstreams.sharing.key import ShareKey
from mcp_server.upstreams.sharing.meeting import Meeting
from mcp_server.upstreams.sharing.place import FOLDER, InstanceHold, MeetingPlace
from mcp_server.upstreams.sharing.stream import MessageStream

ALONE_SECONDS = 60.0
"""For so long, a process does not ask a holder again that did not answer."""

NOT_SHARED = "the server %s is not shared with other menugate processes: %s"

log = logging.getLogger("menugate")


@dataclass(eq=False)
class SharedLinks:
    """Connects to mounts: through another process of this account if one runs the very same server."""

    opener: LinkOpener
    keys: Path | None
    """The folder of this account's keys."""
    client: Client
    """Stands for the clients of other processes."""
    greeting_seconds: float = GREETING_SECONDS
    _alone_until: dict[str, float] = field(default_factory=dict[str, float])
    """By digest: until when an instance of our own is started without asking."""

    @asynccontextmanager
    async def open_link(self, mount: Mount, principal: str) -> AsyncGenerator[Link, None]:
        meeting = self._find_meeting(mount, principal)
        found = await self._meet(meeting) if meeting is not None else None
        chosen: AbstractAsyncContextManager[Link]
        if meeting is None or found is None:
            chosen = self.opener.open_link(mount, principal)
        elif isinstance(found, InstanceHold):
            chosen = self._open_held(meeting, found, principal)
        else:
            chosen = self._open_joined(meeting, found)
        async with chosen as link:
            yield link

    def _find_meeting(self, mount: Mount, principal: str) -> Meeting | None:
        """Return where the processes meet that share this instance; None if nobody else may use it.

        Only what the owner of this process shares among their own sessions, and only programs that we start."""
        target = mount.target
        if mount.serve is Serve.SESSION or principal != self.opener.owner or not isinstance(target, StdioTarget):
            return None
        try:
            if self.keys is None:
                return None
            key = ShareKey.load(self.keys)
            digest = key.digest_definition(describe_instance(self.opener.host, mount, target, principal))
            place = MeetingPlace(self.keys / FOLDER, digest)
            place.prepare()
        except UpstreamNotStarted:
            return None  # starting it says why
        except (OSError, Refusal) as wrong:
            log.warning(NOT_SHARED, mount.name, wrong)
            return None
        return Meeting(place, key, mount, str(self.opener.host.paths.workspace))

    async def _meet(self, meeting: Meeting) -> InstanceHold | MessageStream | None:
        digest = meeting.place.digest
        if self._alone_until.get(digest, 0.0) > time.monotonic():
            return None
        try:
            found = await meeting.hold_or_join(self.greeting_seconds)
        except OSError as wrong:
            log.warning(NOT_SHARED, meeting.mount.name, wrong)
            return None
        if found is None:
            self._go_alone(digest)
        return found

    def _go_alone(self, digest: str) -> None:
        self._alone_until[digest] = time.monotonic() + ALONE_SECONDS

    @asynccontextmanager
    async def _open_joined(self, meeting: Meeting, stream: MessageStream) -> AsyncGenerator[GuestLink, None]:
        try:
            async with open_guest_link(stream) as link:
                yield link
        finally:
            if stream.reason == HOLDER_SILENT:
                self._go_alone(meeting.place.digest)

    @asynccontextmanager
    async def _open_held(self, meeting: Meeting, hold: InstanceHold, principal: str) -> AsyncGenerator[HeldLink, None]:
        door = GuestDoor(hold.listening, meeting.key, hold.place.digest, meeting.mount.name, principal, self.client)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(door.run)
                try:
                    async with self.opener.open_link(meeting.mount, principal) as link:
                        try:
                            yield HeldLink(link, door)
                        finally:
                            await door.close()
                except LinkClosed as closed:
                    door.reason = str(closed)
                    raise
                finally:
                    await door.close()
                    tasks.cancel_scope.cancel()
        finally:
            hold.release()


def describe_instance(host: CommandHost, mount: Mount, target: StdioTarget, principal: str) -> list[object]:
    """Everything that decides what runs, and for whom."""
    started = find_started(mount, target)
    program = find_upstream_program(host, started.argv, started.env, started.folder)
    workspace = str(host.paths.workspace) if mount.roots else ""
    how = (mount.serve, mount.era, mount.idle_seconds, repr(mount.sandbox), workspace, describe_confinement())
    return [mcp_server.__version__, principal, mount.name, program.argv, program.variables, program.folder, *how]
