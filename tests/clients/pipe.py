"""A client that is nothing but lines on a pipe: it sees the order of everything, and can send what no SDK would."""

import json
import queue
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.clients import warm
from tests.clients.served import PATIENCE, command, environment

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Pipe:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.prepare()

    def prepare(self) -> None:
        """Begin to read what the server says."""
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._next = 0
        self.era = "legacy"
        self.name = ""
        self.version = "1"
        self.able: dict[str, Any] = {}
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        # The end of a test closes the stream, perhaps in the middle of a read.
        with suppress(ValueError):
            for line in self.process.stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._next += 1
        body = dict(params or {})
        if self.era != "legacy":
            about = (
                {"io.modelcontextprotocol/clientInfo": {"name": self.name, "version": self.version}}
                if self.name
                else {}
            )
            body["_meta"] = META | about | {"io.modelcontextprotocol/clientCapabilities": self.able}
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": body}
        self.raw(json.dumps(message).encode() + b"\n")
        return self._next

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        about = {} if params is None else {"params": params}
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, **about}).encode() + b"\n")

    def message(self) -> dict[str, Any]:
        """The next message, whatever it is."""
        line = self._lines.get(timeout=PATIENCE)
        assert line, "the server closed its side"
        return json.loads(line)

    def line(self) -> bytes:
        return self._lines.get(timeout=PATIENCE)

    def quiet(self) -> bool:
        """Nothing has come that was not looked at; asked after an answer that would have come later."""
        return self._lines.empty()

    def until(self, request: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The answer to a request, and everything that came before it."""
        before: list[dict[str, Any]] = []
        while (message := self.message()).get("id") != request or "method" in message:
            before.append(message)
        return message, before

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.until(self.send(method, params))[0]

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]

    def list_line(self) -> bytes:
        """The answer to `tools/list` as it stands on the wire; notices before it are passed over."""
        wanted = f'"id":{self.send("tools/list")},'.encode()
        while wanted not in (line := self.line())[:60]:
            pass
        return line

    def bye(self) -> int:
        """Leave as a host does, by closing the pipe; how the server ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=PATIENCE)

    def hello(self, name: str = "opencode", era: str = "legacy", version: str = "1") -> dict[str, Any]:
        self.era, self.name, self.version = era, name, version
        if era != "legacy":
            return self.request("server/discover")
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": self.able,
            "clientInfo": {"name": name, "version": version},
        }
        answer = self.request("initialize", about)
        self.notify("notifications/initialized")
        return answer


@contextmanager
def pipe(workspace: Path, home: Path, *flags: str, run: Sequence[str] = ()) -> Generator[Pipe, None, None]:
    started = [*(run or command("serve")), "--workspace", str(workspace), *flags]
    process = warm.start(
        started, environment(home), cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield Pipe(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
