"""Does a redirect lead only where a new request might go, and take along only what that host may see?"""

import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcp_server.guards.network.egress import DestinationClosed, Egress
from mcp_server.guards.network.http import HttpClient
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.network import Request, Response
from mcp_server.model.results import Refusal
from tests.guards.network.site import Pages, pages
from tests.guards.network.test_http import certificate

pytestmark = pytest.mark.anyio
PRIVATE = (("Authorization", "Bearer canary"), ("Cookie", "a=canary"), ("X-Api-Key", "canary"), ("Accept", "text/html"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def resolve(host: str, port: int) -> Sequence[str]:
    known = {"a.example": "127.0.0.1", "b.example": "127.0.0.1", "inside.example": "10.0.0.1"}
    return [known[host]] if host in known else []


async def ask(
    one: Pages, request: Request, opened: Sequence[int] = (), trust: ssl.SSLContext | None = None
) -> Response:
    listed = parse_destinations(f"127.0.0.1:{port}" for port in (one.port, *opened))
    client = HttpClient(Egress(None, listed, resolve), load_trust=lambda _: trust or ssl.create_default_context())
    try:
        return await client.fetch(request)
    finally:
        await client.close()


def to(one: Pages, path: str, method: str = "GET", body: bytes = b"", redirects: int = 5) -> Request:
    return Request(f"http://a.example:{one.port}{path}", method, PRIVATE, body, redirects=redirects)


async def test_the_same_host_gets_the_same_headers_over_the_same_connection() -> None:
    async with pages() as one:
        one.redirect("/a", "b c?ä#d", 301)
        one.add("/b%20c", b"there")
        said = await ask(one, to(one, "/a"))
        assert (said.body, said.url) == (b"there", f"http://a.example:{one.port}/b%20c?%C3%A4")
        assert one.heard[1].headers == one.heard[0].headers
        assert one.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_another_host_gets_no_credentials(status: int) -> None:
    async with pages() as one:
        one.redirect("/a", f"http://b.example:{one.port}/b", status)
        one.add("/b", b"there")
        assert (await ask(one, to(one, "/a"))).body == b"there"
        first, second = one.heard
        assert "canary" in str(first.headers)
        assert "canary" not in str(second)
        assert second.headers["accept"] == "text/html"
        assert second.headers["host"] == f"b.example:{one.port}"


async def test_another_port_is_another_host() -> None:
    async with pages() as one, pages() as other:
        one.redirect("/a", f"http://a.example:{other.port}/b")
        other.add("/b", b"there")
        assert (await ask(one, to(one, "/a"), [other.port])).body == b"there"
        assert "canary" not in str(other.heard)


@pytest.mark.parametrize(
    ("status", "host", "followed"),
    [
        (301, "a", "GET "),
        (302, "b", "GET "),
        (303, "b", "GET "),
        (307, "a", "POST"),
        (308, "a", "POST"),
        (307, "b", None),
        (308, "b", None),
    ],
)
async def test_a_body_stays_with_the_host_it_was_meant_for(status: int, host: str, followed: str | None) -> None:
    async with pages() as one:
        one.redirect("/a", f"http://{host}.example:{one.port}/b", status)
        one.add("/b", b"there")
        if followed is None:
            with pytest.raises(Refusal, match="what you sent to another host"):
                await ask(one, to(one, "/a", "POST", b"canary-body"))
            assert len(one.heard) == 1
            return
        await ask(one, to(one, "/a", "POST", b"canary-body"))
        assert one.heard[1].line.startswith(followed)
        assert one.heard[1].body == (b"canary-body" if followed == "POST" else b"")


@pytest.mark.parametrize(
    "location",
    [
        "http://inside.example:{port}/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "//0x7f.1:{port}/b",
        "http://2130706433:{port}/b",
        "http://user:password@b.example:{port}/b",
        "http://b.example:{port}\\@a.example/b",
        "file:///etc/passwd",
        "gopher://b.example:{port}/b",
        "javascript:alert(1)",
        "data:text/html,hi",
    ],
)
async def test_nothing_is_reached_by_redirect_that_could_not_be_asked_for(location: str) -> None:
    async with pages() as one:
        one.redirect("/a", location.format(port=one.port))
        with pytest.raises((Refusal, DestinationClosed)):
            await ask(one, to(one, "/a"))
        assert len(one.heard) == 1


async def test_a_circle_and_a_long_way_end() -> None:
    async with pages() as one:
        one.redirect("/a", "/b")
        one.redirect("/b", "/a")
        with pytest.raises(Refusal, match="in a circle"):
            await ask(one, to(one, "/a"))
        for number in range(9):
            one.redirect(f"/{number}", f"/{number + 1}")
        with pytest.raises(Refusal, match="more than 5 times"):
            await ask(one, to(one, "/0"))
        assert len(one.heard) == 2 + 6
        one.add("/9", b"there")
        assert (await ask(one, to(one, "/4"))).body == b"there"


@pytest.mark.parametrize("fields", [(), ("Location: ",)])
async def test_a_redirect_to_nowhere_is_an_answer(fields: tuple[str, ...]) -> None:
    async with pages() as one:
        one.add("/a", b"moved", "302 Found", *fields)
        assert (await ask(one, to(one, "/a"))).body == b"moved"


async def test_https_never_becomes_http(tmp_path: Path) -> None:
    ours = certificate(tmp_path, "a.example")
    trust = ssl.create_default_context(cafile=str(tmp_path / "pem"))
    async with pages() as one, pages(ours) as safe:
        safe.redirect("/a", f"http://a.example:{one.port}/b")
        safe.redirect("/c", "/d")
        safe.add("/d", b"there")
        one.redirect("/e", f"https://a.example:{safe.port}/d")
        url = f"https://a.example:{safe.port}"
        with pytest.raises(Refusal, match="from https to http"):
            await ask(safe, Request(f"{url}/a", redirects=5), [one.port], trust)
        assert one.heard == []
        for start in (f"{url}/c", f"http://a.example:{one.port}/e"):
            assert (await ask(safe, Request(start, redirects=5), [one.port], trust)).body == b"there"
