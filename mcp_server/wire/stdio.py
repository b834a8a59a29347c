"""How do bytes on stdin and stdout become messages? With a bound on every line, and an answer to every broken one.

The SDK's own transport takes a line of any length, and silently drops what it cannot parse, so that the peer waits for
ever. It also hops to a thread for each message, which costs more than the whole gate.
"""

import asyncio
import fcntl
import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCRequest, jsonrpc_message_adapter
from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import to_json

from mcp_server.wire.encoding import encode_message
from mcp_server.wire.jsonrpc import NotStrict, make_no_answer, parse_message

# What is one line, and what happens to one that is too long? It is dropped, but its sender gets an error with its id.
#
# A model that writes a file of five megabytes makes such a line. Some clients write the id first and some last; nothing
# in between is searched.

LONGEST_LINE = 4 * 1024 * 1024
TIP = 512
"""Bytes at either end of a line that are searched for its id."""
MEMBER = rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\]{0,128}"|-?\d{1,18})'
FIRST = re.compile(rb"\s*\{(?:\s*" + MEMBER + rb"\s*,)+")
LAST = re.compile(rb"(?:,\s*" + MEMBER + rb"\s*)+\}\s*\Z")
ONE = re.compile(MEMBER)


class LineTooLong(Struct, frozen=True):
    """A line of more than `LONGEST_LINE` bytes was dropped."""

    request_id: str | int | None


class LineBuffer:
    def __init__(self) -> None:
        self._rest = bytearray()
        self._overlong = False
        self._known: dict[bytes, bytes] = {}
        """The members found at the beginning of an overlong line."""

    def feed(self, chunk: bytes) -> Iterator[bytes | LineTooLong]:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield from self._add(line)
            whole, overlong = self._rest, self._overlong
            self._rest, self._overlong = bytearray(), False
            if overlong:
                yield from self._find_late_id(whole)
            else:
                yield bytes(whole)
        yield from self._add(rest)

    def _add(self, part: bytes) -> Iterator[LineTooLong]:
        self._rest += part
        if not self._overlong and len(self._rest) > LONGEST_LINE:
            self._overlong = True
            self._known = _find_members(FIRST.match(self._rest, 0, TIP))
            # Reported at once: the end of such a line may never come.
            yield LineTooLong(_get_request_id(self._known))
        if self._overlong:
            del self._rest[:-TIP]

    def _find_late_id(self, whole: bytearray) -> Iterator[LineTooLong]:
        if _get_request_id(self._known) is None:
            late = _get_request_id(self._known | _find_members(LAST.search(whole)))
            if late is not None:
                yield LineTooLong(late)


def _find_members(found: "re.Match[bytes] | None") -> dict[bytes, bytes]:
    return dict(ONE.findall(found[0])) if found else {}


def _get_request_id(members: dict[bytes, bytes]) -> str | int | None:
    """Return the id if the message is a request. An answer of the client's carries an id of ours."""
    if b"id" not in members or b"method" not in members:
        return None
    try:
        return json.loads(members[b"id"])
    except ValueError:
        return None


CHUNK = 256 * 1024

Source: TypeAlias = asyncio.StreamReader | int
Sink: TypeAlias = asyncio.StreamWriter | int


@asynccontextmanager
async def open_stdio() -> AsyncGenerator[tuple["Incoming", "Outgoing"], None]:
    """Open the process's own stdin and stdout so that nothing else can write into the middle of a message."""
    source, sink = _claim_streams()
    (reader, close), writer = await _open_reader(source), await _open_writer(sink)
    outgoing = Outgoing(writer)
    try:
        yield Incoming(reader, outgoing), outgoing
    finally:
        close()
        if not isinstance(writer, int):
            writer.close()


class Outgoing:
    """Sends at once: a task in between would cost every answer a turn of the event loop."""

    def __init__(self, writer: Sink) -> None:
        self._writer = writer
        self._turn = anyio.Lock()
        self.asked: set[str] = set()
        """The ids of the questions that were sent."""

    async def send(self, item: SessionMessage, /) -> None:
        if isinstance(item.message, JSONRPCRequest):
            self.asked.add(str(item.message.id))
        await self.write(encode_message(item.message))

    async def write(self, data: bytes) -> None:
        writer = self._writer
        if isinstance(writer, int):
            async with self._turn:
                await anyio.to_thread.run_sync(_write_all, writer, data)
            return
        try:
            writer.write(data)
            await writer.drain()
        except (ConnectionResetError, BrokenPipeError):
            # The client is gone. The end of stdin follows and ends the server.
            sys.stderr.flush()

    async def aclose(self) -> None:
        """Whoever opened the pipe closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        return None


class Incoming:
    """Reads in the receiver's own task, for the same reason as `Outgoing`."""

    def __init__(self, reader: Source, answers: Outgoing) -> None:
        self._reader = reader
        self._answers = answers
        self._lines = LineBuffer()
        self._ready: deque[SessionMessage] = deque()

    async def receive(self) -> SessionMessage | Exception:
        while not self._ready:
            if isinstance(self._reader, int):
                chunk = await anyio.to_thread.run_sync(os.read, self._reader, CHUNK, abandon_on_cancel=True)
            else:
                chunk = await self._reader.read(CHUNK)
            # The last line may end with the stream instead of a newline, as scripts often write it.
            for line in self._lines.feed(chunk or b"\n"):
                await self._take(line)
            if not chunk and not self._ready:
                raise anyio.EndOfStream
        return self._ready.popleft()

    async def _take(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            await self._refuse(INVALID_REQUEST, f"a message is at most {LONGEST_LINE} bytes", line.request_id)
            return
        if not line.strip():
            return
        try:
            found = jsonrpc_message_adapter.validate_python(parse_message(line), by_name=False)
        except NotStrict as refused:
            ours = str(refused.answers) in self._answers.asked
            # The client may use the same id for a request of its own, which still has to be answered.
            await self._refuse(refused.code, refused.reason, None if ours else refused.request_id)
            if ours and refused.answers is not None:
                self._ready.append(SessionMessage(make_no_answer(refused.answers)))
        except ValidationError:
            await self._refuse(INVALID_REQUEST, "this is not a JSON-RPC message", None)
        else:
            self._ready.append(SessionMessage(found))

    async def _refuse(self, code: int, reason: str, request_id: str | int | None) -> None:
        error = {"code": code, "message": reason}
        await self._answers.write(to_json({"jsonrpc": "2.0", "id": request_id, "error": error}) + b"\n")

    async def aclose(self) -> None:
        """Whoever opened the pipe closes it."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        return None


def _claim_streams() -> tuple[int, int]:
    """Make private copies of stdin and stdout. Whatever else prints, here or in a child, goes to stderr; other readers
    get nothing."""
    source, sink = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _is_selectable(fd: int) -> bool:
    kind = os.fstat(fd).st_mode
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)


def _reopen_terminal(fd: int) -> int:
    """Open the terminal again. The event loop can wait for it, while a waiting thread would keep the process alive
    until somebody presses a key. And other programs that share the terminal must not find it set to non-blocking."""
    try:
        opened = os.open(os.ttyname(fd), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return fd
    os.close(fd)
    return opened


async def _open_reader(fd: int) -> tuple[Source, Callable[[], None]]:
    """Return what to read from, and a function that closes it."""
    if os.isatty(fd):
        fd = _reopen_terminal(fd)
    elif not _is_selectable(fd):
        return fd, lambda: None
    reader = asyncio.StreamReader(limit=CHUNK)
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb", 0))
    return reader, transport.close


async def _open_writer(fd: int) -> Sink:
    if not _is_selectable(fd):
        return fd
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(fd, "wb", 0))
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
