"""Does a program that speaks to the proxy get where it may, hear why it may not, and never take more than its share?"""

import asyncio
import gzip
import logging
import os
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.proxy import EgressProxy, RelayLimits
from mcp_server.guards.network.proxy_head import BadProxyRequest, ProxyHead, parse_head
from mcp_server.model.destinations import parse_destinations
from tests.clients.served import PATIENCE
from tests.guards.network.site import Site, shut, site
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.anyio
HEADS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "tables" / "proxy_heads.yaml").read_text())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


NAMES = {"good.example": "127.0.0.1", "inside.example": "10.0.0.1", "cloud.example": "169.254.169.254"}


async def names(host: str, port: int) -> list[str]:
    return [NAMES[host]] if host in NAMES else []


@asynccontextmanager
async def proxied(one: Site, bounds: RelayLimits | None = None, also: tuple[str, ...] = ()) -> AsyncGenerator[int]:
    allowed = parse_destinations([*(f"{name}:{one.port}" for name in (*NAMES, "127.0.0.1")), *also])
    proxy = EgressProxy(Egress(allowed, allowed, names), bounds or RelayLimits())
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    await proxy.serve(listener)
    try:
        yield port
    finally:
        await proxy.close()


@asynccontextmanager
async def dialled(port: int) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        await shut(writer)


async def exchange(port: int, sent: bytes, end: bool = False) -> bytes:
    async with dialled(port) as (reader, writer):
        writer.write(sent)
        if end:
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), PATIENCE)


def get(site: Site, host: str = "good.example", path: str = "/x?y=1", more: str = "") -> bytes:
    return f"GET http://{host}:{site.port}{path} HTTP/1.1\r\nHost: other.example\r\n{more}\r\n".encode()


async def test_a_plain_request_is_passed_on_as_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "menugate.network")
    ours = "Proxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
    async with site() as one, proxied(one) as port:
        said = await exchange(port, get(one, more=f"{ours}Authorization: Bearer sesame\r\n"))
        assert said.endswith(b"\r\n\r\nhi")
        first, *fields = one.heard[0].decode().splitlines()
        assert first == "GET /x?y=1 HTTP/1.1"
        assert fields == [f"Host: good.example:{one.port}", "Connection: close", "Authorization: Bearer sesame", ""]
    assert f"reached good.example:{one.port}" in caplog.text
    for secret in ("y=1", "sesame", "c2VjcmV0", "/x"):
        assert secret not in caplog.text


async def test_a_tunnel_carries_both_ways() -> None:
    async with site() as one, proxied(one) as port, dialled(port) as (reader, writer):
        writer.write(f"CONNECT good.example:{one.port} HTTP/1.1\r\n\r\nGET /1\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        assert (await reader.readuntil(b"hi")).endswith(b"hi")
        writer.write(b"GET /2 close\r\n\r\n")
        assert (await reader.read()).endswith(b"hi")
        assert one.heard == [b"GET /1\r\n\r\nGET /2 close\r\n\r\n"]


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("evil.example", "are not allowed here"),
        ("good.example.evil", "are not allowed here"),
        ("169.254.169.254", "are not allowed here"),
        ("2130706433", "is not a host name"),
        ("inside.example", "resolves to 10.0.0.1 (a private network)"),
        ("cloud.example", "resolves to an address where a cloud keeps a machine's keys"),
    ],
)
async def test_a_refusal_says_why_and_what_would_help(host: str, says: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "menugate.network")
    async with site() as one, proxied(one) as port:
        for sent in (get(one, host), f"CONNECT {host}:{one.port} HTTP/1.1\r\nX-Key: sesame\r\n\r\n".encode()):
            said = (await exchange(port, sent)).decode()
            assert said.startswith("HTTP/1.1 403 Not in network.allow of menugate.yaml\r\n")
            assert says in said
        assert one.connections == 0
        assert f"refused {host}:{one.port}" in caplog.text
        assert "sesame" not in caplog.text


async def test_a_port_that_is_not_listed_is_refused() -> None:
    async with site() as one, site() as other, proxied(one) as port:
        assert b" 403 " in (await exchange(port, get(other)))[:20]
        assert other.connections == 0


async def test_what_cannot_be_reached_is_told_apart_from_what_may_not() -> None:
    async with site() as one, proxied(one, also=("gone.example",)) as port:
        said = await exchange(port, b"CONNECT gone.example:443 HTTP/1.1\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 502 ")
        assert b"has no address" in said


@pytest.mark.parametrize("row", [row for row in HEADS if "wrong" in row], ids=lambda row: row["head"][:40])
def test_a_head_with_two_meanings_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(BadProxyRequest, match=re.escape(row["wrong"])):
        parse_head(row["head"].encode())


@pytest.mark.parametrize("row", [row for row in HEADS if "wrong" not in row], ids=lambda row: row["head"][:40])
def test_a_head_is_read(row: dict[str, Any]) -> None:
    found = parse_head(row["head"].encode())
    assert (found.host, found.port) == (row["host"], row["port"])
    assert found.request_bytes.decode() == row.get("onward", "")
    assert found.is_tunnel == ("onward" not in row)


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n\r\n"]
)
async def test_what_is_no_request_for_a_proxy_is_answered(sent: bytes) -> None:
    async with site() as one, proxied(one) as port:
        assert (await exchange(port, sent)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_without_end_is_not_waited_for() -> None:
    bounds = RelayLimits(head_seconds=0.2)
    async with site() as one, proxied(one, bounds) as port:
        assert (await exchange(port, b"GET http://good.example/ HTTP/1.1\r\nX: ")).startswith(b"HTTP/1.1 408 ")
        assert (await exchange(port, b"CONNECT x:1 HTTP/1.1\r\nX: " + b"x" * 70_000)).startswith(b"HTTP/1.1 431 ")
        assert await exchange(port, b"CONNECT", end=True) == b""
        assert one.connections == 0


@asynccontextmanager
async def tunnel(port: int, one: Site) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with dialled(port) as (reader, writer):
        writer.write(f"CONNECT good.example:{one.port} HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        yield reader, writer


@pytest.mark.parametrize("bounds", [RelayLimits(idle_seconds=0.2), RelayLimits(seconds=0.2)], ids=["idle", "time"])
async def test_a_connection_that_rests_or_lasts_is_ended(bounds: RelayLimits) -> None:
    async with site() as one, proxied(one, bounds) as port, tunnel(port, one) as (reader, _):
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""


async def test_a_connection_carries_no_more_than_its_share() -> None:
    async with site() as one, proxied(one, RelayLimits(bytes=100_000)) as port, tunnel(port, one) as (reader, writer):
        one.answer = b"x" * 1_000_000
        writer.write(b"GET\r\n\r\n")
        got = 0
        with suppress(ConnectionResetError):
            while data := await asyncio.wait_for(reader.read(4096), PATIENCE):
                got += len(data)
        assert 0 < got <= 100_000


async def test_there_are_only_so_many_at_once() -> None:
    async with site() as one, proxied(one, RelayLimits(connections=3)) as port:
        async with tunnel(port, one), tunnel(port, one), tunnel(port, one):
            assert (await exchange(port, get(one))).startswith(b"HTTP/1.1 503 ")
        async with asyncio.timeout(PATIENCE):
            while not (await exchange(port, get(one))).startswith(b"HTTP/1.1 200 "):
                pass


async def test_a_redirect_is_the_programs_and_is_judged_anew() -> None:
    async with site() as one, proxied(one) as port:
        one.answer = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
        assert b"Location: http://169.254.169.254/" in await exchange(port, get(one))
        assert b" 403 " in (await exchange(port, b"GET http://169.254.169.254/ HTTP/1.1\r\n\r\n"))[:20]
        assert one.connections == 1


async def test_what_a_site_says_is_not_looked_into() -> None:
    """A bomb is whoever's who unpacks it; here it is bytes."""
    async with site() as one, proxied(one) as port:
        body = gzip.compress(os.urandom(1000) + bytes(1_000_000))
        one.answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + body
        assert (await exchange(port, get(one))).endswith(body)


def test_a_head_is_a_value() -> None:
    assert parse_head(b"CONNECT a.example:443 HTTP/1.1") == ProxyHead("CONNECT", "a.example", 443)
