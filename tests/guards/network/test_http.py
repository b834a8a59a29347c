"""Does a tool get what it asks for over HTTP, no more than it was granted, and nothing from where nobody may go?"""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http import HttpClient
from mcp_server.guards.network.network import CallNetwork
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.network import Request, Response
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Refusal
from mcp_server.model.tools import Demand, Effect
from tests.guards.network.site import Site, site

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Names:
    """`good.example` is this machine; `flip.example` is it only when it is asked about first."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        known = {"good.example": "127.0.0.1", "xn--gtersloh-65a.example": "127.0.0.1", "inside.example": "10.0.0.1"}
        if host == "flip.example":
            return ["127.0.0.1" if self.asked.count(host) == 1 else "10.0.0.1"]
        return [known[host]] if host in known else []


OPENED: list[CallNetwork | HttpClient] = []


@pytest.fixture(autouse=True)
async def closing() -> AsyncGenerator[None]:
    yield
    while OPENED:
        await OPENED.pop().close()


def opened(client: HttpClient) -> HttpClient:
    OPENED.append(client)
    return client


def door(one: Site, names: Names | None = None) -> Egress:
    return Egress(None, parse_destinations([f"127.0.0.1:{one.port}"]), names or Names())


def reaching(one: Site, effect: Effect = Effect.READ_REMOTE) -> CallNetwork:
    network = CallNetwork(door(one), Demand(effect, Profile.RESTRICTED))
    OPENED.append(network)
    return network


async def test_one_request_one_answer() -> None:
    async with site() as one:
        one.answer = b"HTTP/1.1 404 No\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nno"
        url = f"http://good.example:{one.port}/p?q"
        said = await reaching(one).fetch(Request(url, headers=[("X-B", "c")]))
        assert said == Response(404, [("x-a", "1"), ("x-a", "2"), ("content-length", "2")], b"no", url=url)
        assert said.header("X-A") == "1"
        assert said.header("none") == ""
        first, *fields = one.heard[0].decode().splitlines()
        assert first == "GET /p?q HTTP/1.1"
        assert {f"Host: good.example:{one.port}", "X-B: c"} <= set(fields)


async def test_what_is_connected_to_is_what_was_checked() -> None:
    names = Names()
    async with site() as one:
        await opened(HttpClient(door(one, names))).fetch(Request(f"http://flip.example:{one.port}/"))
        assert (names.asked, one.connections) == (["flip.example"], 1)


@pytest.mark.parametrize(
    "place", ["inside.example", "10.0.0.1", "169.254.169.254", "10%2e0%2E0.1", "[::ffff:10.0.0.1]", "①⓪.⓪.⓪.①"]
)
async def test_nobody_is_reached_who_must_not_be(place: str) -> None:
    async with site() as one:
        with pytest.raises(Refusal) as refused:
            await reaching(one).fetch(Request(f"http://{place}:{one.port}/"))
        assert refused.value.problem.code in (Code.NETWORK_REFUSED, Code.INVALID_ARGUMENTS)
        assert one.connections == 0


async def test_letters_outside_ascii_are_encoded() -> None:
    names = Names()
    async with site() as one:
        egress = Egress(None, parse_destinations([f"127.0.0.1:{one.port}"]), names)
        said = await opened(HttpClient(egress)).fetch(Request(f"http://Gütersloh.example:{one.port}/straße?q=ä"))
        assert said.body == b"hi"
        assert names.asked == ["xn--gtersloh-65a.example"]
        assert one.heard[0].startswith(b"GET /stra%C3%9Fe?q=%C3%A4 HTTP/1.1\r\nHost: xn--gtersloh-65a.example:")


async def test_a_redirect_is_an_answer() -> None:
    async with site() as one:
        one.answer = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
        said = await reaching(one).fetch(Request(f"http://good.example:{one.port}/"))
        assert (said.status, said.header("location")) == (302, "http://169.254.169.254/")
        assert one.connections == 1


@pytest.mark.parametrize(
    ("effect", "method", "allowed"),
    [
        (Effect.READ_LOCAL, "GET", False),
        (Effect.EXEC, "GET", False),
        (Effect.NONE, "GET", False),
        (Effect.READ_REMOTE, "GET", True),
        (Effect.READ_REMOTE, "POST", False),
        (Effect.READ_REMOTE, "DELETE", False),
        (Effect.SPEND, "POST", True),
        (Effect.REMOTE_WRITE, "POST", True),
        (Effect.REMOTE_WRITE, "GET", True),
    ],
)
async def test_no_more_than_was_granted(effect: Effect, method: str, allowed: bool) -> None:
    async with site() as one:
        request = Request(f"http://good.example:{one.port}/", method, body=b"x" if method == "POST" else b"")
        if allowed:
            assert (await reaching(one, effect).fetch(request)).body == b"hi"
        else:
            with pytest.raises(Refusal) as refused:
                await reaching(one, effect).fetch(request)
            assert refused.value.problem.code is Code.NOT_GRANTED
        assert one.connections == int(allowed)


async def test_a_connection_of_its_own_is_for_more_than_reading() -> None:
    async with site() as one:
        with pytest.raises(Refusal):
            await reaching(one).connect("good.example", one.port)
        stream = await reaching(one, Effect.BROWSER_ACT).connect("good.example", one.port)
        await stream.write(b"close\r\n\r\n")
        assert (await stream.read(1000)).endswith(b"hi")
        await stream.close()
        with pytest.raises(Refusal):
            await reaching(one, Effect.BROWSER_ACT).connect("inside.example", one.port)


async def test_an_answer_without_end_is_cut() -> None:
    async with site() as one:
        one.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
        said = await reaching(one).fetch(Request(f"http://good.example:{one.port}/", most_bytes=1000))
        assert (said.body, said.cut) == (b"x" * 1000, True)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", Code.TIMEOUT),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", Code.TIMEOUT),
        (b"nonsense\r\n\r\n", Code.TOOL_FAILED),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, Code.TOOL_FAILED),
    ],
)
async def test_an_answer_that_is_none(answer: bytes, code: Code) -> None:
    async with site() as one:
        one.answer = answer
        with pytest.raises(Refusal) as refused:
            await reaching(one).fetch(Request(f"http://good.example:{one.port}/", seconds=0.5))
        assert refused.value.problem.code is code


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://good.example/",
        "http:///x",
        "http://u:p@good.example/",
        "http://[::1",
        "good.example",
        "http://good.example:0/",
    ],
)
async def test_what_is_no_address_of_the_web(url: str) -> None:
    async with site() as one:
        with pytest.raises(Refusal) as refused:
            await reaching(one).fetch(Request(url))
        assert refused.value.problem.code is Code.INVALID_ARGUMENTS


def certificate(folder: Path, name: str) -> ssl.SSLContext:
    """Signed by itself, for one name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))])
    built = x509.CertificateBuilder(
        subject, subject, key.public_key(), x509.random_serial_number(), start, start.replace(year=2100)
    )
    made = built.add_extension(names, critical=False).sign(key, hashes.SHA256())
    usual = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, usual)
    (folder / "pem").write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pem")
    return context


@pytest.mark.parametrize(("name", "code"), [("good.example", None), ("other.example", Code.TOOL_FAILED)])
async def test_who_answers_over_tls_is_who_was_asked(tmp_path: Path, name: str, code: Code | None) -> None:
    ours = certificate(tmp_path, name)
    trust = ssl.create_default_context(cafile=str(tmp_path / "pem"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ours)
    async with server:
        port = server.sockets[0].getsockname()[1]
        way = Egress(None, parse_destinations([f"127.0.0.1:{port}"]), Names())
        asked = Request(f"https://good.example:{port}/", seconds=5)
        if code is None:
            assert (await opened(HttpClient(way, load_trust=lambda _: trust)).fetch(asked)).body == b"hi"
            return
        with pytest.raises(Refusal) as refused:
            await opened(HttpClient(way, load_trust=lambda _: trust)).fetch(asked)
        assert refused.value.problem.code is code
        assert "certificate is not trusted" in refused.value.problem.message
