"""Which of several processes that want the same instance runs it? The first to hold it; the others find that one.

A holder that dies lets go at once, however it dies, so whoever looks next becomes the holder.
"""

import logging

import anyio
from msgspec import Struct

from mcp_server.model.upstreams import Mount
from mcp_server.upstreams.messages import LinkClosed
from mcp_server.upstreams.sharing.greeting import NotProven, greet_holder
from mcp_server.upstreams.sharing.key import ShareKey
from mcp_server.upstreams.sharing.place import InstanceHold, MeetingPlace
from mcp_server.upstreams.sharing.stream import MessageStream

AGAIN_SECONDS = 0.02
OWN_INSTANCE = "the server %s: %s, so this process runs an instance of its own"

log = logging.getLogger("menugate")


class Meeting(Struct, frozen=True):
    place: MeetingPlace
    key: ShareKey
    mount: Mount
    workspace: str

    async def hold_or_join(self, seconds: float) -> InstanceHold | MessageStream | None:
        """Become the holder, or return a stream to the one there is, which has proved itself. None if it does not
        answer in time, or is not to be trusted."""
        note = {"server": self.mount.name, "workspace": self.workspace}
        with anyio.move_on_after(seconds):
            try:
                while True:
                    if (hold := self.place.try_to_hold(note)) is not None:
                        return hold
                    if (stream := await self._join()) is not None:
                        return stream
                    await anyio.sleep(AGAIN_SECONDS)
            except NotProven as wrong:
                log.warning(OWN_INSTANCE, self.mount.name, f"the process that runs it is not trusted, because {wrong}")
                return None
        log.warning(OWN_INSTANCE, self.mount.name, "the menugate process that runs it does not answer")
        return None

    async def _join(self) -> MessageStream | None:
        """Return None if there is no holder at the moment; it may be about to come or to go."""
        try:
            stream = MessageStream.open(await self.place.connect())
        except (FileNotFoundError, ConnectionError, BlockingIOError):
            return None
        try:
            await greet_holder(stream, self.key, self.place.digest)
        except LinkClosed:
            await stream.close()
            return None
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stream.close()
            raise
        return stream
