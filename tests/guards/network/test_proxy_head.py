"""Is a request to the proxy read in one way alone, and refused where two are possible?"""

import pytest

from mcp_server.guards.network.proxy_head import BadProxyRequest, parse_head


def head(first: str, *fields: str) -> bytes:
    return "\r\n".join((first, *fields)).encode("latin-1")


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [("example.org:443", "example.org", 443), ("[2001:db8::1]:8443", "2001:db8::1", 8443)],
)
def test_a_tunnel_names_host_and_port(target: str, host: str, port: int) -> None:
    found = parse_head(head(f"CONNECT {target} HTTP/1.1", "Host: anything"))
    assert (found.host, found.port, found.is_tunnel) == (host, port, True)


def test_a_plain_request_goes_on_without_what_was_meant_for_us() -> None:
    found = parse_head(
        head(
            "GET http://example.org/a?b=c HTTP/1.1",
            "Host: elsewhere.example",
            "Proxy-Authorization: Basic eDp5",
            "Connection: X-Mine, keep-alive",
            "X-Mine: 1",
            "Accept: */*",
        )
    )
    assert (found.host, found.port, found.is_tunnel) == ("example.org", 80, False)
    assert found.request_bytes == (
        b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    )


@pytest.mark.parametrize(
    "data",
    [
        head("GET / HTTP/1.1"),
        head("GET https://example.org/ HTTP/1.1"),
        head("GET http://user:pw@example.org/ HTTP/1.1"),
        head("GET http://example.org/#part HTTP/1.1"),
        head("GET http:///path HTTP/1.1"),
        head("GET  http://example.org/ HTTP/1.1"),
        head("GET http://example.org/ HTTP/2"),
        head("G@T http://example.org/ HTTP/1.1"),
        head("GET http://example.org/\\a HTTP/1.1"),
        head("GET http://ex\u00e4mple.org/ HTTP/1.1"),
        head("CONNECT example.org HTTP/1.1"),
        head("CONNECT example.org:443:443 HTTP/1.1"),
        head("CONNECT user@example.org:443 HTTP/1.1"),
        head("GET http://example.org/ HTTP/1.1", "no colon here"),
        head("GET http://example.org/ HTTP/1.1", " folded: line"),
        head("GET http://example.org/ HTTP/1.1", "X: a\x00b"),
        head("POST http://example.org/ HTTP/1.1", "Content-Length: 3", "Content-Length: 3"),
        head("POST http://example.org/ HTTP/1.1", "Content-Length: 3", "Transfer-Encoding: chunked"),
        head("POST http://example.org/ HTTP/1.1", "Content-Length: +3"),
        head("POST http://example.org/ HTTP/1.1", "Transfer-Encoding: gzip, chunked"),
        b"",
    ],
    ids=repr,
)
def test_what_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(BadProxyRequest):
        parse_head(data)
