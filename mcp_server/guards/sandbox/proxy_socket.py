"""How does a sandboxed child reach the network? Through our proxy, over a socket created inside and handed out."""

import asyncio
import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

PROGRAM = Path(__file__).parents[1] / "processes/programs/proxy_lane.py"
PORT = 3128
"""Free for certain: nothing else listens on the sandbox's own loopback."""
PROXY_URL = f"http://127.0.0.1:{PORT}"
LOOPBACK = "localhost,127.0.0.1,::1"
VARIABLES = {
    **dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), PROXY_URL),
    **{"no_proxy": LOOPBACK, "NO_PROXY": LOOPBACK, "NODE_USE_ENV_PROXY": "1"},
}
"""Tell programs about the proxy; each program reads some of these."""


class ProxiedChild(Protocol):
    async def wait(self) -> int: ...


class Outlet(Protocol):
    """The proxy that answers the child's connections."""

    async def serve(self, listener: socket.socket) -> asyncio.Server: ...

    async def stop_serving(self, server: asyncio.Server) -> None: ...

    async def close(self) -> None: ...


@dataclass
class ProxySocket:
    """The socket pair over which one child hands us the socket it listens on."""

    ours: socket.socket
    theirs: int = -1
    prefix: list[str] = field(default_factory=list[str])
    """The command prefix that makes the child listen, for a sandbox that already has its own network namespace."""

    @classmethod
    def create(cls) -> "ProxySocket":
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        descriptor = theirs.detach()
        python = str(Path(sys.executable).resolve())
        return cls(ours, descriptor, [python, "-I", "-S", str(PROGRAM), str(descriptor), str(PORT)])

    @property
    def needed_paths(self) -> tuple[str, ...]:
        """Paths that the sandbox must show for the prefix to run."""
        return (sys.base_prefix, str(PROGRAM))

    def abandon(self) -> None:
        """Close both ends; for when no child was started."""
        self.ours.close()
        os.close(self.theirs)

    async def serve_child(self, proxy: Outlet, child: ProxiedChild) -> None:
        """Answer the child's connections for as long as it lives."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._receive_and_serve, proxy)
                await child.wait()
                tasks.cancel_scope.cancel()
        finally:
            self.ours.close()

    async def _receive_and_serve(self, proxy: Outlet) -> None:
        await anyio.wait_readable(self.ours)
        _, descriptors, _, _ = socket.recv_fds(self.ours, 1, 1)
        if not descriptors:
            return  # the child could not listen, and said so on stderr
        server = await self._start_serving(proxy, socket.socket(fileno=descriptors[0]))
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await proxy.stop_serving(server)

    async def _start_serving(self, proxy: Outlet, listener: socket.socket) -> asyncio.Server:
        # Shielded: cancelled halfway, it would leave the socket open.
        with anyio.CancelScope(shield=True):
            return await proxy.serve(listener)
        raise AssertionError("unreachable: this scope is never cancelled")
