"""Who reads strangers' documents? One process in the sandbox, without network, with little memory and little time.

It starts with the first document and then waits for the next. If it breaks, or takes too long, it is ended, and the
next document gets a new one.
"""

import json
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from mcp_server.model.posture import Profile
from mcp_server.model.processes import ChildProcess, Command, Processes
from mcp_server.model.readers import ReadPage
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Demand, Effect

ARGUMENTS = (sys.executable, "-I", "-m", "mcp_server.guards.readers.program")
MEMORY_BYTES = 512 << 20
SECONDS = 20.0
LIFETIME_SECONDS = 3600.0
"""The kernel ends the process after so much computing time per core, as it does with commands."""
MAX_ANSWER_BYTES = 16 << 20
LENGTH = struct.Struct(">I")
DEMAND = Demand(Effect.READ_LOCAL, Profile.RESTRICTED)


class ReaderBroken(Exception):
    """The process ended, or its answer is unusable."""


@dataclass
class DocumentReader:
    """The `Readers` port."""

    build_processes: Callable[[Demand, Profile], Processes]
    seconds: float = SECONDS
    memory: int = MEMORY_BYTES
    _child: ChildProcess | None = None
    _left_over: bytes = b""
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def read_page(self, data: bytes, charset: str | None, address: str) -> ReadPage:
        answer = await self._read({"kind": "html", "charset": charset, "address": address}, data)
        return ReadPage(str(answer["title"]), str(answer["text"]), int(answer["hidden"]), bool(answer["cut"]))

    async def _read(self, request: Mapping[str, Any], document: bytes) -> Mapping[str, Any]:
        head = json.dumps({**request, "size": len(document)}).encode()
        async with self._lock:
            try:
                with anyio.fail_after(self.seconds):
                    answer = await self._exchange(LENGTH.pack(len(head)) + head + document)
            except TimeoutError:
                await self._end()
                raise _build_refusal(f"Reading the document took more than {self.seconds:g} s.") from None
            except (ReaderBroken, OSError, ValueError):
                await self._end()
                raise _build_refusal("The document broke the process that reads documents.") from None
            except BaseException:
                # The next document must not get the answer about this one.
                await self._end()
                raise
        if "missing" in answer:
            way_out = "The user can install what is missing: `pip install 'menugate[web]'`."
            raise Refusal(Problem(Code.NOT_FOUND, "The library that reads this kind of document is missing.", way_out))
        if "fault" in answer:
            raise _build_refusal(f"The document could not be read: {answer['fault']}.")
        return answer

    async def _exchange(self, request: bytes) -> Mapping[str, Any]:
        if self._child is None:
            command = Command(
                (*ARGUMENTS, str(self.memory)),
                seconds=LIFETIME_SECONDS,
                read_only=True,
                apart=True,
            )
            self._child = await self.build_processes(DEMAND, Profile.RESTRICTED).start(command)
        await self._child.write(request)
        size = LENGTH.unpack(await self._receive(self._child, LENGTH.size))[0]
        if size > MAX_ANSWER_BYTES:
            raise ReaderBroken
        answer = json.loads(await self._receive(self._child, size))
        if not isinstance(answer, dict):
            raise ReaderBroken
        return answer  # pyright: ignore[reportUnknownVariableType]  # any JSON object

    async def _receive(self, child: ChildProcess, size: int) -> bytes:
        received = bytearray(self._left_over)
        self._left_over = b""
        if len(received) < size:
            async for piece in child.output():
                received += piece
                if len(received) >= size:
                    break
            else:
                raise ReaderBroken
        self._left_over = bytes(received[size:])
        return bytes(received[:size])

    async def _end(self) -> None:
        child, self._child, self._left_over = self._child, None, b""
        if child is not None:
            with anyio.CancelScope(shield=True), suppress(OSError):
                await child.kill()


def _build_refusal(message: str) -> Refusal:
    return Refusal(Problem(Code.TOOL_FAILED, message, "Use another document, or another source."))
