"""A server on this machine that answers what it is told to, and keeps what it was sent."""

import asyncio
import ssl
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


@dataclass
class HeardRequest:
    """A request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Pages:
    """Answers each path with its own page, over connections that stay open."""

    port: int = 0
    pages: dict[str, bytes] = field(default_factory=dict[str, bytes])
    heard: list[HeardRequest] = field(default_factory=list[HeardRequest])
    connections: int = 0

    def add(self, path: str, body: bytes = b"", status: str = "200 OK", *fields: str) -> None:
        lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", "")
        self.pages[path] = "\r\n".join(lines).encode() + body

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        self.add(path, b"", f"{status} Moved", f"Location: {location}")

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
                headers = {one.partition(":")[0].lower(): one.partition(":")[2].strip() for one in lines if one}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.heard.append(HeardRequest(line, headers, body))
                path = line.split(" ")[1].partition("?")[0]
                writer.write(self.pages.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
                await writer.drain()
        writer.close()


@asynccontextmanager
async def pages(ssl_context: ssl.SSLContext | None = None) -> AsyncGenerator[Pages]:
    made, open_ = Pages(), list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.append(writer)
        await made.talk(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ssl_context)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
        for writer in open_:
            await shut(writer)
