"""What may a tool reach of the network? The port that `guards` implements: the one door out.

A name is looked up once and every address it leads to is checked, so that none leads back to this machine, to an inner
network or to where a cloud keeps its keys. Where nobody may go, `Refusal` says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    url: str
    """`http` or `https`, without a name or a password in it."""
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    seconds: float = 30.0
    """For all of it, from the first look-up to the last byte."""
    most_bytes: int = 5 << 20
    """Of the answer's body; what comes after is not read."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Sequence[tuple[str, str]]
    """Names in small letters, in the order in which they came."""
    body: bytes
    """As it was sent: nothing is unpacked."""
    cut: bool = False

    def header(self, name: str) -> str:
        """The first of that name; empty where there is none."""
        return next((value for key, value in self.headers if key == name.lower()), "")


class NetworkStream(Protocol):
    async def read(self, most: int) -> bytes:
        """Some bytes; none at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class Network(Protocol):
    async def fetch(self, request: Request) -> Response:
        """One request, one answer. A redirect is an answer too: whoever follows it asks again, and is judged again."""
        ...

    async def connect(self, host: str, port: int) -> NetworkStream:
        """A connection to speak any protocol over; only for calls that were granted more than reading."""
        ...
