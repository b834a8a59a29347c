"""What may a tool reach on the network? The port that `guards` implements: the only way out.

A name is looked up once and every address it leads to is checked, so that none leads back to this machine, to an
internal network or to where a cloud keeps its keys. If a destination is not allowed, `Refusal` says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    url: str
    """`http` or `https`, without a user name or a password in it."""
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    seconds: float = 30.0
    """For the whole request, from the first lookup to the last byte."""
    most_bytes: int = 5 << 20
    """Of the answer's body; the rest is not read."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Sequence[tuple[str, str]]
    """Names in lower case, in the order in which they arrived."""
    body: bytes
    """As it was sent: nothing is decompressed."""
    cut: bool = False

    def header(self, name: str) -> str:
        """The first header of that name; empty if there is none."""
        return next((value for key, value in self.headers if key == name.lower()), "")


class NetworkStream(Protocol):
    async def read(self, most: int) -> bytes:
        """Return some bytes; none at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class Network(Protocol):
    async def fetch(self, request: Request) -> Response:
        """Make one request. A redirect is an answer too: following it takes a new request, which is judged
        again."""
        ...

    async def connect(self, host: str, port: int) -> NetworkStream:
        """Open a connection for any protocol; only for calls that were granted more than reading."""
        ...
