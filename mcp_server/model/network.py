"""What may a tool reach on the network? The port that `guards` implements, which is the only way out.

A name is looked up once and every address it leads to is checked, so that none leads back to this machine, to an
internal network or to where a cloud keeps its keys. If a destination is not allowed, `Refusal` says why.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Request(Struct, frozen=True):
    url: str
    """An `http` or `https` URL without a user name or password. Letters outside ASCII are encoded for you."""
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    seconds: float = 30.0
    """The time limit for the whole request, from the first lookup to the last byte, redirects included."""
    most_bytes: int = 5 << 20
    """How much of the response's body is read, counted after decompression."""
    redirects: int = 0
    """How many redirects are followed; 0 to get the redirect itself. Each is checked like a new request. Another host
    gets neither the body nor any header but the most common ones, and https never leads to http."""


class Response(Struct, frozen=True):
    status: int
    headers: Sequence[tuple[str, str]]
    """Names in lower case, in the order in which they arrived."""
    body: bytes
    """The body, decompressed."""
    cut: bool = False
    """True if the body is longer than `most_bytes`, or broke off."""
    url: str = ""
    """Where the response came from, after all redirects."""

    def header(self, name: str) -> str:
        """Return the first header of that name; empty if there is none."""
        return next((value for key, value in self.headers if key == name.lower()), "")


class NetworkStream(Protocol):
    async def read(self, most: int) -> bytes:
        """Return up to `most` bytes; empty at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class Network(Protocol):
    async def fetch(self, request: Request) -> Response:
        """Make one request, and follow as many redirects as it allows. Connections are kept until the call ends."""
        ...

    async def connect(self, host: str, port: int) -> NetworkStream:
        """Open a connection for any protocol. Only calls that were granted more than reading may use this."""
        ...
