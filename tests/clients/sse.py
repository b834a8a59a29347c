"""A client of the older HTTP transport, message by message: one long stream comes back, and each message is a POST."""

import http.client
import queue
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.clients.pipe import Pipe
from tests.clients.raw import SSE
from tests.clients.served import PATIENCE, Served


class SsePipe(Pipe):
    """Speaks as `Pipe` does; the era is always the older one."""

    def __init__(self, served: Served) -> None:
        self.headers = dict(served.headers)
        self.address = urlsplit(served.url)
        self._endpoint: queue.Queue[str] = queue.Queue()
        self._stream = self._connect()
        self._stream.request("GET", "/sse", headers=self.headers | {"Accept": SSE})
        self._answer = self._stream.getresponse()
        assert self._answer.status == 200
        self.prepare()
        self._post_to = self._endpoint.get(timeout=PATIENCE)

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address.hostname or "", self.address.port, timeout=PATIENCE)

    def _read(self) -> None:
        event = b""
        with suppress(OSError, ValueError, http.client.HTTPException):
            while line := self._answer.readline():
                name, _, value = line.strip().partition(b": ")
                if name == b"event":
                    event = value
                elif name == b"data" and event == b"endpoint":
                    self._endpoint.put(value.decode())
                elif name == b"data":
                    self._lines.put(value)
        self._lines.put(b"")

    def raw(self, data: bytes) -> None:
        link = self._connect()
        link.request("POST", self._post_to, data, self.headers | {"Content-Type": "application/json"})
        assert link.getresponse().status == 202
        link.close()

    def close(self) -> None:
        if self._stream.sock is not None:
            self._stream.sock.shutdown(socket.SHUT_RDWR)
        self._reading.join(PATIENCE)
        self._stream.close()


@contextmanager
def sse_pipe(served: Served) -> Generator[SsePipe, None, None]:
    one = SsePipe(served)
    try:
        yield one
    finally:
        one.close()
