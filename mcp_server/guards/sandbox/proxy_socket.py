"""Where does the way out of a sandbox lead? To a proxy of ours, over a socket that was made in there and handed out."""

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
"""Of a loopback in which nobody else listens."""
PROXY = f"http://127.0.0.1:{PORT}"
HERE = "localhost,127.0.0.1,::1"
VARIABLES = {
    **dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), PROXY),
    **{"no_proxy": HERE, "NO_PROXY": HERE, "NODE_USE_ENV_PROXY": "1"},
}
"""How programs are told of a proxy; each reads some of these."""


class ProxiedChild(Protocol):
    async def wait(self) -> int: ...


class Outlet(Protocol):
    """Who answers at the other end."""

    async def serve(self, listening: socket.socket) -> asyncio.Server: ...

    async def stop_serving(self, server: asyncio.Server) -> None: ...

    async def close(self) -> None: ...


@dataclass
class ProxySocket:
    """One child's way out: our end, and the one it is started with."""

    ours: socket.socket
    theirs: int = -1
    words: list[str] = field(default_factory=list[str])
    """What makes a program listen first, where a network of its own is there already."""

    @classmethod
    def create(cls) -> "ProxySocket":
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        number = theirs.detach()
        python = str(Path(sys.executable).resolve())
        return cls(ours, number, [python, "-I", "-S", str(LANE), str(number), str(PORT)])

    @property
    def needed_paths(self) -> tuple[str, ...]:
        """What has to be seen from inside."""
        return (sys.base_prefix, str(LANE))

    def abandon(self) -> None:
        """Nobody was started with it."""
        self.ours.close()
        os.close(self.theirs)

    async def serve_child(self, outlet: Outlet, child: ProxiedChild) -> None:
        """Answer who comes out, for as long as the child lives."""
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
            return  # it could not listen, and said so where errors are said
        server = await self._start_serving(outlet, socket.socket(fileno=numbers[0]))
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await outlet.stop_serving(server)

    async def _start_serving(self, outlet: Outlet, listening: socket.socket) -> asyncio.Server:
        """Left in the middle of this, the socket would have nobody who closes it."""
        with anyio.CancelScope(shield=True):
            return await outlet.serve(listening)
        raise AssertionError("a scope that nobody cancels swallows nothing")
