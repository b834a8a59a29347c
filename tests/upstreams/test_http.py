"""Do calls reach servers at an address, with the configured headers, and nothing that they may not reach?"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.model.upstreams import HttpTarget, HttpTransport, Mount, UpstreamState
from tests.upstreams.ground import caller, grounded

pytestmark = pytest.mark.anyio
TRANSPORTS = list(HttpTransport)


@asynccontextmanager
async def answering(respond: Callable[[bytes], bytes]) -> AsyncGenerator[tuple[str, list[bytes]], None]:
    """A server that answers each request's head, and what it was sent."""
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(respond(heads[-1]))
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", heads


def at(url: str, transport: HttpTransport = HttpTransport.STREAMABLE, **headers: str) -> Mount:
    return Mount("far", "far", HttpTarget(url, transport, headers))


def plain(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode()


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_that_wants_a_token_says_how_to_give_it_one(tmp_path: Path, transport: HttpTransport) -> None:
    async with (
        answering(lambda _: plain("401 Unauthorized")) as (url, heads),
        grounded(tmp_path, at(url, transport)) as g,
    ):
        with anyio.fail_after(10), pytest.raises(Refusal) as refused:
            await g.servers.call_tool("far", "x", {}, caller())
        assert refused.value.problem.code is Code.UPSTREAM_LOGIN
        assert "${secret:NAME}" in refused.value.problem.way_out
        assert g.servers.get_status("far").state is UpstreamState.LOGIN
        assert heads


async def test_configured_headers_are_sent(tmp_path: Path) -> None:
    async with (
        answering(lambda _: plain("500 No")) as (url, heads),
        grounded(tmp_path, at(url, Authorization="abc")) as g,
    ):
        with pytest.raises(Refusal):
            await g.servers.call_tool("far", "x", {}, caller())
        assert all(b"authorization: abc" in head.lower() for head in heads) and heads


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_only_the_user_reaches_a_private_address(tmp_path: Path, transport: HttpTransport) -> None:
    async with answering(lambda _: plain("500 No")) as (url, heads), grounded(tmp_path, at(url, transport)) as g:
        with anyio.fail_after(10), pytest.raises(Refusal) as refused:
            await g.servers.call_tool("far", "x", {}, caller(principal="guest"))
        assert refused.value.problem.code is Code.UPSTREAM_AWAY
        assert "this machine" in refused.value.problem.message
        assert heads == []
