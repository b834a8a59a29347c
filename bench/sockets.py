"""How long does a server take to answer over HTTP? One raw socket, so that hardly any of the time is the client's."""

import json
import socket
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from bench import messages
from bench.pipes import PATIENCE, ServerFault


class HttpConnection:
    """One keep-alive connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._socket = socket.create_connection(address, PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def close(self) -> None:
        self._socket.close()

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def ask(self, body: bytes) -> tuple[float, Mapping[str, Any]]:
        """Return the seconds until the whole reply arrived, and the reply."""
        wire = messages.build_post(self.address, body)
        started = perf_counter()
        self._socket.sendall(wire)
        head, text = self._reply()
        took = perf_counter() - started
        if not head.startswith(b"HTTP/1.1 200"):
            raise ServerFault(f"the server answered {head.splitlines()[0].decode()}: {text[:300].decode()}")
        message = json.loads(text)
        if trouble := messages.find_fault(message):
            raise ServerFault(f"the server answered with an error: {trouble}")
        return took, message

    def _reply(self) -> tuple[bytes, bytes]:
        pieces: list[bytes] = []
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._piece()
        head, _, body = received.partition(b"\r\n\r\n")
        missing = parse_length(head) - len(body)
        pieces.append(body)
        while missing > 0:
            pieces.append(self._piece())
            missing -= len(pieces[-1])
        return head, b"".join(pieces)

    def _piece(self) -> bytes:
        piece = self._socket.recv(1 << 20)
        if not piece:
            raise ServerFault("the server closed the connection")
        return piece


def parse_length(head: bytes) -> int:
    """The length that a reply declares. A plain answer is never sent in chunks; a chunked one has become a stream."""
    for field in head.split(b"\r\n"):
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ServerFault(f"the reply has no length: {head.decode(errors='replace')}")
