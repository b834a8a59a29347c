"""The SDK's client over stdio, with the server that it starts forked warm: everything else is the SDK's own."""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TextIO, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.to_thread import run_sync
from mcp import StdioServerParameters
from mcp.client import stdio

from tests.clients import warm

MOST = 1 << 16


class SpokenTo(ByteSendStream):
    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        os.set_blocking(pipe.fileno(), False)

    async def send(self, item: bytes) -> None:
        while item:
            if self._pipe.closed:
                raise anyio.ClosedResourceError
            await anyio.wait_writable(self._pipe)
            with suppress(BlockingIOError):
                item = item[os.write(self._pipe.fileno(), item) :]

    async def aclose(self) -> None:
        close(self._pipe)


class SpokenBy(ByteReceiveStream):
    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    async def receive(self, max_bytes: int = MOST) -> bytes:
        if self._pipe.closed:
            raise anyio.ClosedResourceError
        await anyio.wait_readable(self._pipe)
        if said := os.read(self._pipe.fileno(), max_bytes):
            return said
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        close(self._pipe)


def close(pipe: IO[bytes]) -> None:
    if not pipe.closed:
        anyio.notify_closing(pipe)
        pipe.close()


class WarmServer(Process):
    """What the SDK asks of a process that it started."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self._popen = process
        self._stdin, self._stdout = SpokenTo(process.stdin), SpokenBy(process.stdout)

    async def wait(self) -> int:
        return await run_sync(self._popen.wait)

    async def aclose(self) -> None:
        await self._stdin.aclose()
        await self._stdout.aclose()
        await self.wait()

    def terminate(self) -> None:
        self._popen.terminate()

    def kill(self) -> None:
        self._popen.kill()

    def send_signal(self, signal: int) -> None:
        self._popen.send_signal(signal)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.poll()

    @property
    def stdin(self) -> SpokenTo:
        return self._stdin

    @property
    def stdout(self) -> SpokenBy:
        return self._stdout

    @property
    def stderr(self) -> None:
        return None


async def start(
    command: str, args: Sequence[str], env: dict[str, str], errlog: TextIO, cwd: Path | str | None
) -> WarmServer:
    """In place of the SDK's own way to start a process."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errlog, "bufsize": 0}
    return WarmServer(warm.start([command, *args], env, cwd=cwd, start_new_session=True, **pipes))


def connect(server: StdioServerParameters) -> Any:
    # Always the same, so that it does not matter which of two connections is opened first.
    cast(Any, stdio)._create_platform_compatible_process = start
    return stdio.stdio_client(server)
