"""Who is turned away at the door, before anything is read or run?"""

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.clients import ERAS
from tests.clients.line import ACCEPT, HttpLine, Speaker, request
from tests.clients.served import Served, served
from tests.clients.tight import TIGHT
from tests.clients.waiting import wait_until
from tests.wire.conftest import GUEST, WireWorkspace

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
PORT = "@PORT@"

# what, the headers that are otherwise (None leaves one out), the status
HEADERS: list[tuple[str, dict[str, str | None], int]] = [
    ("no Host", {"host": None}, 421),
    ("an empty Host", {"host": ""}, 421),
    ("somebody else's Host", {"host": "example.com"}, 421),
    ("a Host that begins like ours", {"host": f"localhost.evil:{PORT}"}, 421),
    ("a Host that goes on after the port", {"host": f"127.0.0.1:{PORT}.evil"}, 421),
    ("a Host on another port", {"host": "127.0.0.1:1"}, 421),
    ("a Host without a port", {"host": "127.0.0.1"}, 421),
    ("a Host with a user", {"host": f"x@127.0.0.1:{PORT}"}, 421),
    ("a Host written as a number", {"host": f"2130706433:{PORT}"}, 421),
    ("our own name", {"host": f"localhost:{PORT}"}, 200),
    ("our own name in capitals", {"host": f"LocalHost:{PORT}"}, 200),
    ("somebody else's page", {"origin": "http://example.com"}, 403),
    ("a page whose name begins like ours", {"origin": f"http://localhost.evil:{PORT}"}, 403),
    ("a page on another port", {"origin": "http://127.0.0.1:1"}, 403),
    ("a page whose port goes on", {"origin": f"http://127.0.0.1:{PORT}.evil"}, 403),
    ("a page over TLS", {"origin": f"https://127.0.0.1:{PORT}"}, 403),
    ("a page from nowhere", {"origin": "null"}, 403),
    ("our own page", {"origin": f"http://127.0.0.1:{PORT}"}, 200),
    ("no token", {"authorization": None}, 401),
    ("an empty token", {"authorization": "Bearer "}, 401),
    ("a wrong token", {"authorization": "Bearer wrong"}, 401),
    ("a token of another kind", {"authorization": "Basic @TOKEN@"}, 401),
    ("two tokens in one", {"authorization": "Bearer @TOKEN@ @TOKEN@"}, 401),
    ("a token that is not ASCII", {"authorization": "Bearer \xff\xfe"}, 401),
    ("half a token", {"authorization": "Bearer @HALF@"}, 401),
    ("our token", {"authorization": "bearer @TOKEN@"}, 200),
    ("no content type", {"content-type": None}, 400),
    ("a form", {"content-type": "application/x-www-form-urlencoded"}, 400),
    ("plain text", {"content-type": "text/plain"}, 400),
    ("something like JSON", {"content-type": "application/jsonp"}, 400),
    ("JSON in UTF-16", {"content-type": "application/json; charset=utf-16"}, 415),
    ("JSON in Latin-1", {"content-type": "application/json;charset=iso-8859-1"}, 415),
    ("JSON in UTF-8", {"content-type": 'application/json; charset="UTF-8"'}, 200),
    ("nothing accepted", {"accept": "text/html"}, 406),
    ("large headers", {"x-large": "x" * 20_000}, 431),
    ("a length that is none", {"content-length": "many"}, 400),
    ("a length below zero", {"content-length": "-1"}, 400),
    ("a length of five gigabytes", {"content-length": "5000000000"}, 413),
]
# what, the name of a header that comes twice
TWICE = ["host", "origin", "authorization", "content-type", "content-length"]
PATHS = [
    ("POST", "/mcp/nothing", 404),
    ("POST", "/mcp/../etc/passwd", 404),
    ("POST", "/mcp%2fswe", 200),
    ("POST", "/nothing", 404),
    ("PUT", "/mcp", 405),
    ("PATCH", "/mcp", 405),
    ("POST", "/sse", 405),
    ("GET", "/messages/", 405),
    ("POST", "/messages/", 400),
    ("POST", "/messages/?session_id=nothing", 400),
    ("POST", "/messages/?session_id=00000000000000000000000000000000", 404),
    ("POST", "/healthz", 405),
    ("OPTIONS", "/mcp", 405),
    ("TRACE", "/mcp", 405),
]


def prepared(value: str | None, house: Served) -> str | None:
    port = house.url.split(":")[2].partition("/")[0]
    known = {PORT: port, "@TOKEN@": house.token, "@HALF@": house.token[:20]}
    for name, text in known.items():
        value = value.replace(name, text) if value is not None else None
    return value


@pytest.mark.parametrize(("what", "changes", "status"), HEADERS, ids=[row[0] for row in HEADERS])
def test_headers(speaker: Speaker, what: str, changes: dict[str, str | None], status: int) -> None:
    other = {name: prepared(value, speaker.served) for name, value in changes.items()}
    with speaker.start("tools/call", {"name": "think", "arguments": {"content": what}}, **other) as line:
        answer = line.answer()
    assert answer.status == status, answer
    if status in (401, 403, 413, 415, 421, 431):
        assert answer.message["error"]["code"] == -32600
        assert answer.message["error"]["message"]
    assert (answer.headers.get("www-authenticate") is not None) == (status == 401)
    assert speaker.call("think", content="still there?")["isError"] is False


@pytest.mark.parametrize("name", TWICE)
def test_a_header_that_may_come_once(speaker: Speaker, name: str) -> None:
    headers = speaker.headers(PING, origin=f"http://{speaker.served.url.split('/')[2]}")
    again = next(header for header in headers if header[0] == name)
    with speaker.open() as line:
        line.send(request("POST", "/mcp", [*headers, again], PING))
        assert line.answer().status == 400
    assert speaker.call("think", content="still there?")["isError"] is False


@pytest.mark.parametrize(("method", "path", "status"), PATHS)
def test_paths(speaker: Speaker, method: str, path: str, status: int) -> None:
    params = {"name": "think", "arguments": {"content": path}}
    body = speaker.body("tools/call", params)
    with speaker.open() as line:
        line.send(request(method, path, speaker.headers(body, **speaker.routing("tools/call", params)), body))
        answer = line.answer()
    assert answer.status == status, answer
    assert b"Traceback" not in answer.body
    assert speaker.call("think", content="still there?")["isError"] is False


def test_a_token_in_the_address_opens_nothing(speaker: Speaker) -> None:
    for query in ("token", "access_token", "authorization", "key"):
        with speaker.open() as line:
            path = f"/mcp?{query}={speaker.served.token}"
            line.send(request("POST", path, speaker.headers(PING, authorization=None), PING))
            assert line.answer().status == 401


def test_health_needs_no_token_and_says_nothing(house: Served) -> None:
    for path, expected in (("/healthz", {"status": "ok"}), ("/readyz", {"ready": True})):
        with HttpLine(house.url) as line:
            line.send(request("GET", path, [("host", house.url.split("/")[2])]))
            assert json.loads(line.answer().body) == expected
    with HttpLine(house.url) as line:
        line.send(request("GET", "/healthz", [("host", "example.com")]))
        assert line.answer().status == 421


def test_who_looks_for_metadata_finds_none_and_needs_no_token(house: Served) -> None:
    """Clients that were refused look there for whoever gives tokens, and here is nobody who does."""
    for name in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        with HttpLine(house.url) as line:
            line.send(request("GET", f"/.well-known/{name}", [("host", house.url.split("/")[2])]))
            assert line.answer().status == 404


def test_who_asks_for_what_was_missed_gets_a_stream_that_begins_anew(house: Served) -> None:
    speaker = Speaker(house).hello()
    with speaker.open() as line:
        line.send(request("GET", "/mcp", speaker.headers(b"", content_length=None, last_event_id="5")))
        assert line.head()[0] == 200


@pytest.mark.parametrize("origin", ["http://localhost:{port}", "https://page.example", "http://elsewhere.example"])
def test_a_page_may_read_what_it_may_ask(tmp_path: Path, origin: str) -> None:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    flags = ("--allowed-origins", "https://page.example")
    with served(tmp_path / "work", tmp_path / "home", *flags) as one:
        page = origin.format(port=one.url.split(":")[2].partition("/")[0])
        speaker = Speaker(one, ERAS[1])
        wanted = "authorization, content-type, mcp-method, mcp-protocol-version"
        asking = {"access_control_request_method": "POST", "access_control_request_headers": wanted}
        with speaker.open() as line:
            headers = speaker.headers(b"", authorization=None, origin=page, **asking)
            line.send(request("OPTIONS", "/mcp", headers))
            asked = line.answer()
        called = speaker.ask("server/discover", origin=page)
        unknown = speaker.ask("server/discover", origin=page, authorization="Bearer wrong")
    if "elsewhere" in page:
        assert [answer.status for answer in (asked, called, unknown)] == [403, 403, 403]
        assert "access-control-allow-origin" not in called.headers
        return
    assert [answer.status for answer in (asked, called, unknown)] == [204, 200, 401]
    assert asked.headers["access-control-allow-headers"] == wanted
    for answer in (asked, called, unknown):
        assert answer.headers["access-control-allow-origin"] == page
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"]


def test_somebody_elses_session_is_not_there(house: Served) -> None:
    mine = Speaker(house).hello()
    guest = Speaker(house, token=GUEST, session=mine.session)
    assert guest.ask("tools/list").status == 404
    with guest.open() as line:
        line.send(request("DELETE", "/mcp", guest.headers(b"")))
        assert line.answer().status == 404
    assert mine.ask("tools/list").status == 200


def test_somebody_elses_stream_takes_no_messages(house: Served) -> None:
    mine, guest = Speaker(house), Speaker(house, token=GUEST)
    with stream(mine, "/sse") as line:
        address = line.chunk().split(b"data: ")[1].split()[0].decode()
        body = mine.body("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
        for speaker, status in ((guest, 404), (mine, 202)):
            with speaker.open() as post:
                post.send(request("POST", address, speaker.headers(body), body))
                assert post.answer().status == status


def test_what_follows_a_body_is_another_request(speaker: Speaker) -> None:
    """More bytes than the length says cannot become part of the request, nor a request that nobody checked."""
    params = {"name": "think", "arguments": {"content": "x"}}
    body = speaker.body("tools/call", params)
    whole = request("POST", "/mcp", speaker.headers(body, **speaker.routing("tools/call", params)), body)
    with speaker.open() as line:
        line.send(whole + request("POST", "/mcp", [("host", "example.com"), ("content-length", "0")]))
        assert [line.answer().status, line.answer().status] == [200, 421]
    with speaker.open() as line:
        line.send(whole + b"garbage\r\n\r\n")
        assert line.answer().status == 400
        assert line.ended()
    assert speaker.call("think", content="still there?")["isError"] is False


def test_a_body_in_pieces_is_bounded_too(speaker: Speaker) -> None:
    headers = [*speaker.headers(b"", content_length=None), ("transfer-encoding", "chunked")]
    with speaker.open() as line:
        line.send(request("POST", "/mcp", headers))
        for _ in range(5):
            line.send(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        line.send(b"0\r\n\r\n")
        assert line.answer().status == 413
    both = [*speaker.headers(PING), ("transfer-encoding", "chunked")]
    with speaker.open() as line:
        line.send(request("POST", "/mcp", both, PING))
        assert line.answer().status == 400, "a length and pieces together are how requests are smuggled"


def test_a_head_without_end_is_cut_off(house: Served) -> None:
    with HttpLine(house.url) as line:
        line.send(b"POST /mcp HTTP/1.1\r\nx-endless: " + b"x" * 40_000)
        assert line.answer().status == 431
        assert line.ended()
    with HttpLine(house.url) as line, pytest.raises(OSError):
        for _ in range(100):
            line.send(b"POST /mcp HTTP/1.1\r\nx-endless: " + b"x" * 1_000_000)


def stream(speaker: Speaker, path: str = "/mcp") -> HttpLine:
    """An open GET stream."""
    line = speaker.open()
    headers = speaker.headers(b"", content_length=None, content_type=None, accept=ACCEPT)
    line.send(request("GET", path, headers))
    status, _ = line.head()
    assert status == 200, status
    return line


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("tight")
    for name in ("work", "home"):
        (folder / name).mkdir()
    run = [sys.executable, "-m", "tests.clients.tight"]
    with served(folder / "work", folder / "home", run=run) as one:
        yield one


def test_a_body_that_does_not_arrive(tight: Served) -> None:
    speaker = Speaker(tight).hello()
    with speaker.open() as line:
        line.send(request("POST", "/mcp", speaker.headers(PING), PING[:20]))
        answer = line.answer()
        assert answer.status == 408
        assert "within 0.3 s" in answer.message["error"]["message"]
        assert line.ended()
    assert speaker.ask("ping").status == 200


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTT", b"POST /mcp HTTP/1.1\r\nhost: x\r\n"])
def test_a_head_that_does_not_arrive(tight: Served, sent: bytes) -> None:
    with HttpLine(tight.url) as line:
        line.send(sent)
        if sent:
            assert line.answer().status == 408
        assert line.ended()


def test_a_head_that_comes_drop_by_drop(tight: Served) -> None:
    with HttpLine(tight.url) as line, pytest.raises(OSError):  # reset or closed, as it happens
        for _ in range(100):
            line.send(b"POST /mcp HTTP/1.1\r\n"[:1])
            time.sleep(0.02)


def test_a_connection_is_used_again_after_a_pause(tight: Served) -> None:
    speaker = Speaker(tight).hello()
    with speaker.open() as line:
        for _ in range(2):
            line.send(request("POST", "/mcp", speaker.headers(PING), PING))
            assert line.answer().status == 200
            time.sleep(2 * TIGHT.head_seconds)


def test_an_answer_that_nobody_reads(tight: Served) -> None:
    """Who takes nothing of it is let go; the place and the memory are for others."""
    speaker = Speaker(tight, ERAS[1]).hello()
    body = speaker.body("tools/list")
    one = request("POST", "/mcp", speaker.headers(body, mcp_method="tools/list"), body)
    assert tight.process is not None
    opened = Path(f"/proc/{tight.process.pid}/fd")
    before = len(list(opened.iterdir()))
    with speaker.open() as line:
        line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with suppress(ConnectionError):
            # More than the system keeps for the two of them.
            line.send(one * 2000)
        wait_until(lambda: len(list(opened.iterdir())) <= before)
    assert speaker.ask("server/discover").status == 200


def test_too_many_requests_at_once(tight: Served) -> None:
    """Half-sent ones count: they hold memory as whole ones do. Health goes on answering, and so do streams."""
    speaker = Speaker(tight).hello()
    with ExitStack() as stack:
        for _ in range(TIGHT.requests):
            line = stack.enter_context(speaker.open())
            line.send(request("POST", "/mcp", speaker.headers(PING), PING[:20]))
        for _ in range(3):
            answer = speaker.ask("ping")
            assert answer.status == 503
            assert "try again" in answer.message["error"]["message"]
        with HttpLine(tight.url) as health:
            health.send(request("GET", "/healthz", [("host", tight.url.split("/")[2])]))
            assert health.answer().status == 200
        stack.enter_context(stream(speaker))
    wait_until(lambda: speaker.ask("ping").status == 200, "the server never noticed who left")


def test_too_many_streams(tight: Served) -> None:
    speaker = Speaker(tight).hello()
    with ExitStack() as stack:
        for _ in range(TIGHT.sse):
            stack.enter_context(stream(speaker, "/sse"))
        with speaker.open() as line:
            line.send(request("GET", "/sse", speaker.headers(b"")))
            assert line.answer().status == 503
        assert speaker.ask("ping").status == 200
        modern = Speaker(tight, ERAS[1])
        for _ in range(TIGHT.streams - TIGHT.sse):
            open_one = stack.enter_context(modern.start("subscriptions/listen", LISTEN))
            assert open_one.head()[0] == 200
        assert modern.ask("subscriptions/listen", LISTEN).status == 503
        assert modern.call("think", content="x")["isError"] is False


LISTEN = {"notifications": {"toolsListChanged": True}}


def test_too_many_sessions(tmp_path: Path) -> None:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    run = [sys.executable, "-m", "tests.clients.tight"]
    with served(tmp_path / "work", tmp_path / "home", run=run) as one:
        speakers = [Speaker(one).hello() for _ in range(TIGHT.sessions)]
        answer = Speaker(one).ask("initialize", {})
        assert answer.status == 503, answer
        last = speakers[-1]
        assert last.ask("ping").status == 200
        with last.open() as line:
            line.send(request("DELETE", "/mcp", last.headers(b"")))
            assert line.answer().status == 200
        assert replace(last).ask("ping").status == 404
        assert Speaker(one).hello().ask("ping").status == 200, "there is room again"


def test_six_hundred_at_once(ground: WireWorkspace, house: Served) -> None:
    """At the limits that are served: those beyond are told to come again, and the rest is answered."""
    speaker = Speaker(house).hello()
    with ExitStack() as stack:
        lines = [stack.enter_context(speaker.open()) for _ in range(600)]
        for line in lines:
            body = speaker.body("ping")
            line.send(request("POST", "/mcp", speaker.headers(body), body[:-1]))
        with HttpLine(house.url) as health:
            health.send(request("GET", "/healthz", [("host", house.url.split("/")[2])]))
            assert health.answer().status == 200
        refused = speaker.ask("ping")
        assert refused.status == 503
        for line in lines:
            line.send(PING[-1:])
        answers = [line.answer().status for line in lines]
    assert answers.count(200) == 512
    assert answers.count(503) == 88
    wait_until(lambda: speaker.ask("ping").status == 200, "the server never noticed who left")
