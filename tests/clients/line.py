"""HTTP as it stands on the wire: any bytes go out, and what comes back is taken apart by hand."""

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.clients.pipe import META
from tests.clients.served import PATIENCE, Served

ACCEPT = "application/json, text/event-stream"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What it says, whether as one JSON text or as a stream of events."""
        if "event-stream" in self.headers.get("content-type", ""):
            lines = [line[5:].strip() for line in self.body.replace(b"\r", b"").split(b"\n")]
            kept = [line for line, raw in zip(lines, self.body.split(b"\n"), strict=True) if raw.startswith(b"data:")]
            return [json.loads(line) for line in kept if line]
        return [json.loads(self.body)] if self.body else []

    @property
    def message(self) -> dict[str, Any]:
        return self.messages[-1]


class HttpLine:
    """One connection."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url)
        self.socket = socket.create_connection((self.address.hostname, self.address.port), timeout=PATIENCE)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> "HttpLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def head(self) -> tuple[int, dict[str, str]]:
        first = self._file.readline()
        if not first:
            raise ConnectionResetError("the server closed the connection without an answer")
        headers: dict[str, str] = {}
        while (line := self._file.readline().strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split()[1]), headers

    def answer(self) -> Answer:
        status, headers = self.head()
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, b"".join(iter(self.chunk, b"")))
        return Answer(status, headers, self._file.read(int(headers.get("content-length", 0))))

    def chunk(self) -> bytes:
        """The next piece of a stream; nothing where it ended."""
        size = int(self._file.readline() or b"0", 16)
        data = self._file.read(size)
        self._file.readline()
        return data

    def event(self) -> dict[str, Any]:
        """The next message of a stream."""
        while True:
            data = self.chunk()
            assert data, "the stream ended"
            for line in data.splitlines():
                if line.startswith(b"data:") and line[5:].strip().startswith(b"{"):
                    return json.loads(line[5:])

    def ended(self) -> bool:
        return self._file.read(1) == b""


def request(method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass
class Speaker:
    """A client that knows the protocol and nothing else; every request has a connection of its own."""

    served: Served
    era: str = "legacy"
    path: str = "/mcp"
    token: str = ""
    session: str = ""
    _next: int = field(default=0)

    @property
    def modern(self) -> bool:
        return self.era != "legacy"

    def open(self) -> HttpLine:
        return HttpLine(self.served.url)

    def headers(self, body: bytes, **other: str | None) -> list[tuple[str, str]]:
        """What a client sends; `None` leaves one out. Underscores stand for dashes."""
        usual: dict[str, str | None] = {
            "host": self.served.url.split("/")[2],
            "accept": ACCEPT,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "authorization": f"Bearer {self.token or self.served.token}",
            "mcp-session-id": self.session or None,
            "mcp-protocol-version": self.era if self.modern else None,
        }
        usual |= {name.replace("_", "-"): value for name, value in other.items()}
        return [(name, value) for name, value in usual.items() if value is not None]

    def routing(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The headers in which the modern era says again what stands in the body."""
        if not self.modern:
            return {}
        name = params.get("name", params.get("uri"))
        return {"mcp_method": method} | ({"mcp_name": name} if isinstance(name, str) else {})

    def body(self, method: str, params: Mapping[str, Any] | None = None) -> bytes:
        self._next += 1
        given = dict(params or {}) | ({"_meta": META | (params or {}).get("_meta", {})} if self.modern else {})
        return json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": given}).encode()

    def start(self, method: str, params: Mapping[str, Any] | None = None, **other: str | None) -> HttpLine:
        """The request is out; nobody has looked for its answer yet."""
        body = self.body(method, params)
        line = self.open()
        headers = self.headers(body, **self.routing(method, params or {}), **other)
        line.send(request("POST", self.path, headers, body))
        return line

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **other: str | None) -> Answer:
        with self.start(method, params, **other) as line:
            return line.answer()

    def post(self, body: bytes, **other: str | None) -> Answer:
        with self.open() as line:
            line.send(request("POST", self.path, self.headers(body, **other), body))
            return line.answer()

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments}).message["result"]

    def hello(self, name: str = "mcp") -> "Speaker":
        if self.modern:
            assert self.ask("server/discover").status == 200
            return self
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        answer = self.ask("initialize", about)
        assert answer.status == 200, answer
        self.session = answer.headers["mcp-session-id"]
        assert self.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').status == 202
        return self
