"""How does a sandboxed child reach the network? Through our proxy, over a socket created inside and handed out."""

import asyncio
import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

LANE = Path(__file__).parents[1] / "processes/programs/proxy_lane.py"
PORT = 3128
"""On a loopback where nothing else listens."""
PROXY = f"http://127.0.0.1:{PORT}"
HERE = "localhost,127.0.0.1,::1"
VARIABLES = {
    **dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), PROXY),
    **{"no_proxy": HERE, "NO_PROXY": HERE, "NODE_USE_ENV_PROXY": "1"},
}
"""How programs learn of a proxy; each reads some of these."""


class ProxiedChild(Protocol):
    async def wait(self) -> int: ...


class Outlet(Protocol):
    """The proxy at the other end."""

    async def serve(self, listening: socket.socket) -> asyncio.Server: ...

    async def stop_serving(self, server: asyncio.Server) -> None: ...

    async def close(self) -> None: ...


@dataclass
class ProxySocket:
    """One child's connection to the proxy: our end, and the end that the child starts with."""

    ours: socket.socket
    theirs: int = -1
    words: list[str] = field(default_factory=list[str])
    """Makes the child listen before it becomes the command, in a sandbox that already has a network of its own."""

    @classmethod
    def create(cls) -> "ProxySocket":
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        number = theirs.detach()
        python = str(Path(sys.executable).resolve())
        return cls(ours, number, [python, "-I", "-S", str(LANE), str(number), str(PORT)])

    @property
    def needed_paths(self) -> tuple[str, ...]:
        """What must be visible inside."""
        return (sys.base_prefix, str(LANE))

    def abandon(self) -> None:
        """Close both ends if no child was started."""
        self.ours.close()
        os.close(self.theirs)

    async def serve_child(self, outlet: Outlet, child: ProxiedChild) -> None:
        """Answer the child's connections for as long as it lives."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._receive_and_serve, outlet)
                await child.wait()
                tasks.cancel_scope.cancel()
        finally:
            self.ours.close()

    async def _receive_and_serve(self, outlet: Outlet) -> None:
        await anyio.wait_readable(self.ours)
        _, numbers, _, _ = socket.recv_fds(self.ours, 1, 1)
        if not numbers:
            return  # it could not listen, and said so on stderr
        server = await self._start_serving(outlet, socket.socket(fileno=numbers[0]))
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await outlet.stop_serving(server)

    async def _start_serving(self, outlet: Outlet, listening: socket.socket) -> asyncio.Server:
        """Shielded: if this were cancelled halfway, nobody would close the socket."""
        with anyio.CancelScope(shield=True):
            return await outlet.serve(listening)
        raise AssertionError("a scope that nobody cancels swallows nothing")
