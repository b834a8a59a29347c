"""How do bytes on stdin and stdout become messages? With a bound on every line, and an answer to every broken one.

The SDK's own transport takes a line of any length and drops what it cannot parse without a word, so that the peer
waits for ever; and it takes a thread hop per message, which costs more than the whole gate.
"""

import asyncio
import fcntl
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from mcp_server.wire.listings import Prepared
from mcp_server.wire.transports.lines import LONGEST_LINE, Lines, Overlong
from mcp_server.wire.transports.strict import NotStrict, message

CHUNK = 256 * 1024

Incoming: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def stdio() -> AsyncGenerator[Streams, None]:
    """The process's own stdin and stdout, with nobody else able to write into the middle of a message."""
    source, sink = _claimed()
    reader, writer = await _reader(source), await _writer(sink)
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](16)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_receive, reader, incoming, writer)
            group.start_soon(_send, outgoing, writer)
            yield received, sent
            group.cancel_scope.cancel()
    finally:
        if not isinstance(writer, int):
            writer.close()


def _claimed() -> tuple[int, int]:
    """Private copies of stdin and stdout; what prints, here or in a child, goes to stderr and reads nothing."""
    source, sink = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _selectable(fd: int) -> bool:
    kind = os.fstat(fd).st_mode
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)


async def _reader(fd: int) -> asyncio.StreamReader | int:
    if not _selectable(fd):
        return fd
    reader = asyncio.StreamReader(limit=CHUNK)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", 0))
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter | int:
    if not _selectable(fd):
        return fd
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(fd, "wb", 0))
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _receive(reader: asyncio.StreamReader | int, incoming: Incoming, writer: asyncio.StreamWriter | int) -> None:
    lines = Lines()
    async with incoming:
        while chunk := await _chunk(reader):
            for line in lines.feed(chunk):
                await _take(line, incoming, writer)


async def _take(line: bytes | Overlong, incoming: Incoming, writer: asyncio.StreamWriter | int) -> None:
    if isinstance(line, Overlong):
        await _write(writer, _error(INVALID_REQUEST, f"a message is at most {LONGEST_LINE} bytes", line.request_id))
        return
    if not line.strip():
        return
    try:
        found = jsonrpc_message_adapter.validate_python(message(line), by_name=False)
    except NotStrict as refused:
        await _write(writer, _error(refused.code, refused.reason, refused.request_id))
    except ValidationError:
        await _write(writer, _error(INVALID_REQUEST, "this is not a JSON-RPC message", None))
    else:
        await incoming.send(SessionMessage(found))


async def _send(outgoing: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter | int) -> None:
    async with outgoing:
        async for message in outgoing:
            await _write(writer, encoded(message.message))


def encoded(message: Any) -> bytes:
    """A message as one line. A prepared list goes out as the bytes it was prepared as."""
    if isinstance(message, JSONRPCResponse):
        head = b'{"jsonrpc":"2.0","id":' + to_json(message.id) + b',"result":'
        tools = message.result.get("tools")
        if isinstance(tools, Prepared):
            rest = {key: value for key, value in message.result.items() if key != "tools"}
            tail = b"," + to_json(rest)[1:] if rest else b"}"
            return head + b'{"tools":' + tools.json + tail + b"}\n"
        return head + _json(message.result) + b"}\n"
    return _json(message.model_dump(by_alias=True, exclude_unset=True)) + b"\n"


def _json(value: Any) -> bytes:
    try:
        return to_json(value)
    except PydanticSerializationError:
        # A lone surrogate somewhere: the standard encoder writes it as an escape that every JSON reader takes.
        import json

        return json.dumps(value, separators=(",", ":")).encode()


def _error(code: int, message: str, request_id: str | int | None) -> bytes:
    return to_json({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}) + b"\n"


async def _chunk(reader: asyncio.StreamReader | int) -> bytes:
    if isinstance(reader, int):
        return await anyio.to_thread.run_sync(os.read, reader, CHUNK, abandon_on_cancel=True)
    return await reader.read(CHUNK)


async def _write(writer: asyncio.StreamWriter | int, data: bytes) -> None:
    if isinstance(writer, int):
        await anyio.to_thread.run_sync(_write_all, writer, data)
        return
    try:
        writer.write(data)
        await writer.drain()
    except (ConnectionResetError, BrokenPipeError):
        # The client is gone; its end of stdin follows and ends the server.
        sys.stderr.flush()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
