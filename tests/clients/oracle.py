"""A model's endpoint on this machine: a real HTTP server that says what it is told to, and keeps what it was sent."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/v1/chat/completions"


@dataclass
class Heard:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> str:
        """What the user's message held."""
        return str(json.loads(self.body)["messages"][-1]["content"])


@dataclass
class Oracle:
    port: int
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    silent: bool = False
    """It takes the question and says nothing."""
    heard: list[Heard] = field(default_factory=list[Heard])
    asked: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def says(self, content: Any) -> None:
        """What the model says; anything but a text is written as JSON first."""
        text = content if isinstance(content, str) else json.dumps(content)
        self.body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@contextmanager
def oracle() -> Generator[Oracle]:
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name the library calls
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            one.heard.append(Heard(self.path, headers, self.rfile.read(length)))
            one.asked.set()
            if one.silent:
                one.closing.wait()
                return
            self.send_response(one.status)
            for name, value in one.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(one.body)))
            self.end_headers()
            self.wfile.write(one.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    one = Oracle(server.server_address[1])
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield one
    finally:
        one.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
