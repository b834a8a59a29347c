"""A client that is nothing but HTTP requests: it opens the streams it is told to, and sees the order on each."""

import http.client
import json
import select
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.clients.clients import MODERN
from tests.clients.pipe import META
from tests.clients.served import PATIENCE, Served

SSE = "text/event-stream"


@dataclass
class Stream:
    """One answer, message by message, as they come."""

    link: http.client.HTTPConnection
    answer: http.client.HTTPResponse

    @property
    def status(self) -> int:
        return self.answer.status

    def message(self) -> dict[str, Any]:
        if self.answer.getheader("content-type", "").partition(";")[0] != SSE:
            return json.loads(self.answer.read())
        while line := self.answer.readline():
            if line.startswith(b"data:") and line[5:].strip():
                return json.loads(line[5:])
        raise AssertionError("the stream ended")

    def until(self, request: int) -> tuple[dict[str, Any], list[str]]:
        """The answer to a request, and the notices that came before it on this stream."""
        before: list[str] = []
        while (message := self.message()).get("id") != request:
            before.append(message["method"])
        return message, before

    def quiet(self, seconds: float = 0.15) -> bool:
        """Nothing more comes for a moment. What is to come would have been on its way already."""
        return not select.select([self.link.sock], [], [], seconds)[0]

    def close(self) -> None:
        self.link.close()


@dataclass(eq=False)
class RawClient:
    served: Served
    path: str = ""
    name: str = "opencode"
    era: str = "legacy"
    token: str | None = None
    able: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """What it sends beside what every client does."""
    session: str | None = None
    _next: int = 0
    _open: list[Stream] = field(default_factory=list[Stream])

    def send(self, method: str, params: dict[str, Any] | None = None) -> tuple[int, Stream]:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": self._body(params)}
        return self._next, self.post(message)

    def post(self, message: dict[str, Any]) -> Stream:
        extra: dict[str, str] = {}
        if self.era == MODERN and "method" in message:
            name = message.get("params", {}).get("name")
            extra = {"Mcp-Method": message["method"]} | ({"Mcp-Name": name} if name else {})
        return self._ask("POST", json.dumps(message), extra)

    def post_text(self, text: str) -> Stream:
        return self._ask("POST", text, {})

    def listening(self) -> Stream:
        """The stream on which a legacy server speaks unasked."""
        return self._ask("GET", None, {})

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        number, stream = self.send(method, params)
        answer, _ = stream.until(number)
        stream.close()
        return answer

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]

    def hello(self) -> "RawClient":
        if self.era == MODERN:
            return self
        about = {"protocolVersion": "2025-11-25", "capabilities": self.able, "clientInfo": self._who()}
        number, stream = self.send("initialize", about)
        assert stream.status == 200
        self.session = stream.answer.getheader("mcp-session-id")
        stream.until(number)
        stream.close()
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).close()
        return self

    def bye(self) -> int:
        stream = self._ask("DELETE", None, {})
        stream.close()
        return stream.status

    def close(self) -> None:
        for stream in self._open:
            stream.close()

    def _who(self) -> dict[str, str]:
        return {"name": self.name, "version": "1"}

    def _body(self, params: dict[str, Any] | None) -> dict[str, Any]:
        if self.era != MODERN:
            return dict(params or {})
        about = {
            "io.modelcontextprotocol/clientInfo": self._who(),
            "io.modelcontextprotocol/clientCapabilities": self.able,
        }
        return {**(params or {}), "_meta": META | about}

    def _ask(self, verb: str, body: str | None, extra: dict[str, str]) -> Stream:
        where = urlsplit(self.served.url)
        link = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
        headers = {"Accept": f"application/json, {SSE}", "Content-Type": "application/json", **extra, **self.headers}
        token = self.served.token if self.token is None else self.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self.era == MODERN:
            headers["MCP-Protocol-Version"] = MODERN
        elif self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        link.request(verb, where.path + self.path, body, headers)
        stream = Stream(link, link.getresponse())
        self._open.append(stream)
        return stream


@contextmanager
def raw(served: Served, **about: Any) -> Generator[RawClient, None, None]:
    client = RawClient(served, **about)
    try:
        yield client.hello()
    finally:
        client.close()
