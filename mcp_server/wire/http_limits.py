"""How large may a request's head be, how long may it take, and how long may an answer stay unread?

uvicorn sets no limits. It buffers a head of any length and waits for its end for ever, for anyone who can connect,
because `HttpAccess`, which checks the token, sees only complete heads. It also waits for ever for a client that does
not read its answer and so occupies a slot.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mcp_server.wire.http_access import LONGEST_HEADERS, WHOLE, HttpLimits

MAX_HEAD_BYTES = 2 * LONGEST_HEADERS
"""More than `HttpAccess` allows, so that a complete head that is too large gets its answer from there."""


class BoundedRequests(HttpToolsProtocol):
    limits: HttpLimits
    _length = 0
    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _patience: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.limits.head_seconds, self._refuse_late_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        self._cancel_reader_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._length += len(data)
        super().data_received(data)
        if self._in_head and self._length and self._deadline is None:
            # Most heads arrive whole and need no timer.
            self._deadline = self.loop.call_later(self.limits.head_seconds, self._refuse_late_head)
        if self._length > MAX_HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large", "the headers are too large")

    def on_headers_complete(self) -> None:
        self._in_head, self._length = False, 0
        self._cancel_head_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._length = True, 0
        self.scope[WHOLE] = True  # pyright: ignore[reportGeneralTypeIssues]  # a key of our own
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        self._cancel_reader_timer()
        super().resume_writing()

    def _wait_for_reader(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._patience = self.loop.call_later(self.limits.unread_seconds, self._check_unread)

    def _check_unread(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            # Slow, but it reads.
            self._wait_for_reader()
        else:
            self.transport.abort()

    def _cancel_reader_timer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _refuse_late_head(self) -> None:
        self._deadline = None
        self._refuse(b"408 Request Timeout", f"the request did not arrive within {self.limits.head_seconds:g} s")

    def _cancel_head_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: bytes, reason: str) -> None:
        self._cancel_head_timer()
        if self.transport.is_closing():
            return
        # Before the first request there is no cycle.
        if self._length and getattr(self.cycle, "response_complete", True):
            head = b"HTTP/1.1 " + status + b"\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            body = reason.encode()
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()


def make_bounded_protocol(limits: HttpLimits) -> type[HttpToolsProtocol]:
    """Make the class that uvicorn instantiates for every connection."""
    return type("Bounded", (BoundedRequests,), {"limits": limits})
