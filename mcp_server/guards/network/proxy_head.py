"""What does a program ask the proxy for? Parses the head of one request strictly, and refuses anything ambiguous."""

import re
from urllib.parse import urlsplit

from msgspec import Struct

MAX_HEAD_BYTES = 32 << 10
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
HOP_HEADERS = frozenset(
    b"connection proxy-connection keep-alive proxy-authorization proxy-authenticate te trailer upgrade host".split()
)
"""Headers meant for the proxy, which are not forwarded; `Host` is written again from the requested address."""


class BadProxyRequest(Exception):
    """The proxy does not answer this request; the message says why."""


class ProxyHead(Struct, frozen=True):
    method: str
    host: str
    port: int
    request_bytes: bytes = b""
    """What to send to the host; empty for a tunnel."""

    @property
    def is_tunnel(self) -> bool:
        return not self.request_bytes


def parse_head(data: bytes) -> ProxyHead:
    """Parse everything before the empty line."""
    request_line, *field_lines = data.split(b"\r\n")
    parts = request_line.split(b" ")
    if len(parts) != 3 or not TOKEN.fullmatch(parts[0]) or parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadProxyRequest("it is not an HTTP/1.1 request")
    fields = [_parse_field(line) for line in field_lines]
    try:
        method, target = parts[0].decode("ascii"), parts[1].decode("ascii")
    except UnicodeDecodeError:
        raise BadProxyRequest("its address is not ASCII") from None
    if method == "CONNECT":
        return ProxyHead(method, *_parse_authority(target, None))
    return _parse_plain_request(method, target, fields)


def _parse_field(line: bytes) -> tuple[bytes, bytes]:
    match = FIELD.fullmatch(line)
    if match is None:
        raise BadProxyRequest("one of its headers is malformed")
    return match[1], match[2]


def _parse_plain_request(method: str, target: str, fields: list[tuple[bytes, bytes]]) -> ProxyHead:
    if not target.lower().startswith("http://"):
        raise BadProxyRequest("the proxy only takes CONNECT and addresses that begin with http://")
    try:
        parts = urlsplit(target)
    except ValueError:
        raise BadProxyRequest("its address cannot be read") from None
    if "@" in parts.netloc or parts.fragment or not parts.netloc or re.search(r"[\x00-\x20\x7f\\]", target):
        raise BadProxyRequest("its address cannot be read")
    host, port = _parse_authority(parts.netloc, 80)
    connection_fields = {
        name.strip().lower() for key, value in fields if key.lower() == b"connection" for name in value.split(b",")
    }
    forwarded = [(name, value) for name, value in fields if name.lower() not in HOP_HEADERS | connection_fields]
    _check_body_length(forwarded)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: " + parts.netloc.encode(), b"Connection: close"]
    lines += [name + b": " + value for name, value in forwarded]
    return ProxyHead(method, host, port, b"\r\n".join(lines) + b"\r\n\r\n")


def _check_body_length(fields: list[tuple[bytes, bytes]]) -> None:
    """If two ends measure a body differently, one request can be smuggled inside another."""
    lengths = [value for name, value in fields if name.lower() == b"content-length"]
    encodings = [value for name, value in fields if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(encodings) > 1 or not all(value.isdigit() for value in lengths):
        raise BadProxyRequest("the length of its body is ambiguous")
    if encodings and encodings[0].lower() != b"chunked":
        raise BadProxyRequest("its body has an unknown encoding")


def _parse_authority(text: str, default_port: int | None) -> tuple[str, int]:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/?#@\s]+)(?::(\d{1,5}))?", text)
    if match is None or (match[2] is None and default_port is None):
        raise BadProxyRequest("it names no host and port")
    port = default_port if match[2] is None else int(match[2])
    return match[1].strip("[]"), port or 0
