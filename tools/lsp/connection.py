"""How do we talk to a language server? Framing, requests with a timeout, and replies to what it asks.

A server may ask its client to write files and to open windows. We do none of that: we answer with the folder it works
in and the settings from `servers`, and decline everything else.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

import anyio

from tools.lsp.protocol import to_fields, to_list, to_text

MAX_HEAD_BYTES = 8192
MAX_BODY_BYTES = 32 << 20
"""More than any useful answer. We drop a server that announces more."""


class BrokenFrame(Exception):
    """The server broke the protocol, and the rest of its stream cannot be read; the message says how."""


def frame_message(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class FrameReader:
    """Splits a stream of bytes, which comes in chunks of any size, into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_length: int | None = None
        """None while the head is incomplete."""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        self._buffer += chunk
        while (body := self._take_body()) is not None:
            yield _parse_message(body)

    def _take_body(self) -> bytes | None:
        if self._body_length is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end > MAX_HEAD_BYTES or (end < 0 and len(self._buffer) > MAX_HEAD_BYTES):
                raise BrokenFrame(f"a message head of more than {MAX_HEAD_BYTES:,} bytes")
            if end < 0:
                return None
            self._body_length = _parse_length(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
        if len(self._buffer) < self._body_length:
            return None
        body = bytes(self._buffer[: self._body_length])
        del self._buffer[: self._body_length]
        self._body_length = None
        return body


def _parse_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            # Not int(): it also reads signs, underscores and the digits of other scripts.
            if not value.strip().isdigit() or len(value.strip()) > 12:
                raise BrokenFrame("a message without a readable length")
            if int(value) > MAX_BODY_BYTES:
                raise BrokenFrame(f"a message of {int(value):,} bytes, over the limit of {MAX_BODY_BYTES:,}")
            return int(value)
    raise BrokenFrame("a message without its length")


def _parse_message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise BrokenFrame("a message that is not JSON") from None
    if not isinstance(message, dict):
        raise BrokenFrame("a message that is not a JSON object")
    return cast(dict[str, Any], message)


METHOD_NOT_FOUND = -32601
RETRY_CODES = (-32801, -32802)
"""ContentModified and ServerCancelled: the server gave up because something changed meanwhile."""
MAX_ATTEMPTS = 3
RETRY_SECONDS = 0.05
CONNECTION_ENDED = "over"
"""The last notification, which we make up."""


class LspStream(Protocol):
    def output(self) -> AsyncIterator[bytes]: ...

    async def write(self, data: bytes) -> None: ...


class ServerGone(Exception):
    """The server ended, or broke the protocol; the message says which."""


class ServerSilent(Exception):
    """The server did not answer in time."""


class RequestDeclined(Exception):
    """The server answered with an error; the message is the server's."""

    def __init__(self, code: object, message: str) -> None:
        super().__init__(message)
        self.code = code


class LspConnection:
    """`settings` are the server's own settings by section; `on_notification` gets what the server announces."""

    def __init__(
        self,
        stream: LspStream,
        folder: Mapping[str, str],
        settings: Mapping[str, Any],
        on_notification: Callable[[str, Any], None],
    ) -> None:
        self._stream, self._folder, self._settings, self._on_notification = stream, folder, settings, on_notification
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._last_number = 0
        self.notification_count = 0
        """How much the server has announced. What comes after a count describes at least what it knew at that count."""
        self.end: str | None = None
        """Why the connection ended; None while it lasts."""
        self._write_lock = asyncio.Lock()
        self._cancellations: set[asyncio.Task[None]] = set()
        self._listener = asyncio.get_running_loop().create_task(self._listen())

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._request_once(method, params, seconds)
            except RequestDeclined as declined:
                if declined.code not in RETRY_CODES or attempt == MAX_ATTEMPTS:
                    raise
                await anyio.sleep(RETRY_SECONDS)

    async def _request_once(self, method: str, params: Any, seconds: float) -> Any:
        self._last_number += 1
        number, answer = self._last_number, asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            with anyio.fail_after(seconds):
                await self._send({"id": number, "method": method, "params": params})
                return await answer
        except TimeoutError:
            raise ServerSilent(method) from None
        except asyncio.CancelledError:
            # Tell the server that it can stop working on it, in a task of its own, since this one is cancelled.
            task = asyncio.get_running_loop().create_task(self._cancel_request(number))
            self._cancellations.add(task)
            task.add_done_callback(self._cancellations.discard)
            raise
        finally:
            del self._answers[number]
            if not answer.done():
                answer.cancel()

    async def _cancel_request(self, number: int) -> None:
        with suppress(ServerGone, ServerSilent):
            await self.notify("$/cancelRequest", {"id": number})

    async def notify(self, method: str, params: Any, seconds: float = 10.0) -> None:
        try:
            with anyio.fail_after(seconds):
                await self._send({"method": method, "params": params})
        except TimeoutError:
            raise ServerSilent(method) from None

    async def close(self) -> None:
        for task in (self._listener, *self._cancellations):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await self._listener

    async def _send(self, message: Mapping[str, Any]) -> None:
        async with self._write_lock:
            if self.end is not None:
                raise ServerGone(self.end)
            try:
                await self._stream.write(frame_message({"jsonrpc": "2.0", **message}))
            except BaseException:
                # The server would read the next message as the rest of this one.
                self.end = "a message to it was cut short"
                raise

    async def _listen(self) -> None:
        frames, end = FrameReader(), "it ended"
        try:
            async for chunk in self._stream.output():
                for message in frames.feed(chunk):
                    await self._handle_message(message)
        except BrokenFrame as broken:
            end = f"it sent {broken}"
        except (OSError, ServerGone):
            end = "it ended"
        finally:
            self.end = self.end or end
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(ServerGone(self.end))
            self._on_notification(CONNECTION_ENDED, None)

    async def _handle_message(self, message: Mapping[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._handle_answer(number, message)
        elif number is None:
            self.notification_count += 1
            self._on_notification(method, message.get("params"))
        else:
            await self._send({"id": number, **self._build_reply(method, message.get("params"))})

    def _handle_answer(self, number: object, message: Mapping[str, Any]) -> None:
        answer = self._answers.get(number) if type(number) is int else None
        if answer is None or answer.done():
            return
        if "error" in message:
            error = to_fields(message["error"])
            answer.set_exception(
                RequestDeclined(error.get("code"), to_text(error.get("message")) or "it gave no reason")
            )
        else:
            answer.set_result(message.get("result"))

    def _build_reply(self, method: str, params: object) -> dict[str, Any]:
        match method:
            case "workspace/configuration":
                items = to_list(to_fields(params).get("items"))
                return {"result": [self._settings.get(to_text(to_fields(item).get("section"))) for item in items]}
            case "workspace/workspaceFolders":
                return {"result": [self._folder]}
            case "workspace/applyEdit":
                return {"result": {"applied": False, "failureReason": "This client changes no files."}}
            case "window/showDocument":
                return {"result": {"success": False}}
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/workDoneProgress/create"
                | "window/showMessageRequest"
                | "workspace/diagnostic/refresh"
                | "workspace/semanticTokens/refresh"
                | "workspace/inlayHint/refresh"
                | "workspace/codeLens/refresh"
            ):
                self._on_notification(method, params)
                return {"result": None}
            case _:
                return {"error": {"code": METHOD_NOT_FOUND, "message": f"`{method[:80]}` is not supported."}}
