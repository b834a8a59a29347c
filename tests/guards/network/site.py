"""A server on this machine that answers what it is told to, and keeps what it was sent."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Site:
    port: int
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    heard: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0


@asynccontextmanager
async def site() -> AsyncGenerator[Site]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        one.connections += 1
        open_.append(writer)
        with suppress(ConnectionError):
            await talk(one, reader, writer)
        writer.close()

    open_: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    one = Site(server.sockets[0].getsockname()[1])
    async with server:
        yield one
    for writer in open_:
        await shut(writer)


async def talk(one: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    one.heard.append(b"")
    place = len(one.heard) - 1
    while data := await reader.read(65536):
        one.heard[place] += data
        if b"\r\n\r\n" in one.heard[place]:
            writer.write(one.answer)
            await writer.drain()
            if b"close" in one.heard[place].lower():
                return


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
