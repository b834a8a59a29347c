"""What does a program ask a proxy for? The head of one request, parsed strictly; anything ambiguous is refused."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

MOST_HEAD = 32 << 10
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
FOR_US = frozenset(
    b"connection proxy-connection keep-alive proxy-authorization proxy-authenticate te trailer upgrade host".split()
)
"""Fields meant for the proxy, which are not forwarded; `Host` is written again from the requested address."""


class BadProxyRequest(Exception):
    """Not a request that the proxy answers; the message says why."""


@dataclass(frozen=True, slots=True)
class ProxyHead:
    method: str
    host: str
    port: int
    onward: bytes = b""
    """What to send to the other end; empty for a tunnel."""

    @property
    def is_tunnel(self) -> bool:
        return not self.onward


def parse_head(data: bytes) -> ProxyHead:
    """Parse everything before the empty line."""
    first, *rest = data.split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not TOKEN.fullmatch(words[0]) or words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadProxyRequest("it does not begin with a request of HTTP/1.1")
    fields = [_parse_field(line) for line in rest]
    try:
        method, target = words[0].decode("ascii"), words[1].decode("ascii")
    except UnicodeDecodeError:
        raise BadProxyRequest("its address is not ASCII") from None
    if method == "CONNECT":
        return ProxyHead(method, *_parse_authority(target, None))
    return _parse_plain_request(method, target, fields)


def _parse_field(line: bytes) -> tuple[bytes, bytes]:
    found = FIELD.fullmatch(line)
    if found is None:
        raise BadProxyRequest("one of its fields is none")
    return found[1], found[2]


def _parse_plain_request(method: str, target: str, fields: list[tuple[bytes, bytes]]) -> ProxyHead:
    if not target.lower().startswith("http://"):
        raise BadProxyRequest("a proxy answers CONNECT, and addresses that begin with http://")
    try:
        parts = urlsplit(target)
    except ValueError:
        raise BadProxyRequest("its address cannot be read") from None
    if "@" in parts.netloc or parts.fragment or not parts.netloc or re.search(r"[\x00-\x20\x7f\\]", target):
        raise BadProxyRequest("its address cannot be read")
    host, port = _parse_authority(parts.netloc, 80)
    named = {
        name.strip().lower() for key, value in fields if key.lower() == b"connection" for name in value.split(b",")
    }
    kept = [(name, value) for name, value in fields if name.lower() not in FOR_US | named]
    _check_body_length(kept)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: " + parts.netloc.encode(), b"Connection: close"]
    lines += [name + b": " + value for name, value in kept]
    return ProxyHead(method, host, port, b"\r\n".join(lines) + b"\r\n\r\n")


def _check_body_length(fields: list[tuple[bytes, bytes]]) -> None:
    """If two ends measure a body differently, one request can be smuggled inside another."""
    lengths = [value for name, value in fields if name.lower() == b"content-length"]
    coded = [value for name, value in fields if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(coded) > 1 or not all(value.isdigit() for value in lengths):
        raise BadProxyRequest("the length of its body can be read in two ways")
    if coded and coded[0].lower() != b"chunked":
        raise BadProxyRequest("its body is coded in a way that is not known here")


def _parse_authority(text: str, usual: int | None) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/?#@\s]+)(?::(\d{1,5}))?", text)
    if found is None or (found[2] is None and usual is None):
        raise BadProxyRequest("it names no host and port")
    port = usual if found[2] is None else int(found[2])
    return found[1].strip("[]"), port or 0
