"""How do we talk with a language server?"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

import anyio

from tools.lsp.protocol import to_fields, to_list, to_text

# Where does one message of a language server end and the next begin? Bytes become messages, within bounds.

MOST_HEAD = 8192
MOST_FRAME = 32 << 20
"""More than any answer has use for; a server that announces more is not believed and not waited for."""


class BrokenFrame(Exception):
    """What the server sent is not the protocol; the message says how. There is no going on after it."""


def frame_message(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class FrameReader:
    """The messages in a stream of bytes that comes in pieces of any size."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._awaited: int | None = None
        """How many bytes the message has whose head was read."""

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        self._held += piece
        while (body := self._take_body()) is not None:
            yield _parse_message(body)

    def _take_body(self) -> bytes | None:
        if self._awaited is None:
            end = self._held.find(b"\r\n\r\n")
            if end > MOST_HEAD or (end < 0 and len(self._held) > MOST_HEAD):
                raise BrokenFrame(f"a message head of more than {MOST_HEAD:,} bytes")
            if end < 0:
                return None
            self._awaited = _parse_length(bytes(self._held[:end]))
            del self._held[: end + 4]
        if len(self._held) < self._awaited:
            return None
        body = bytes(self._held[: self._awaited])
        del self._held[: self._awaited]
        self._awaited = None
        return body


def _parse_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            # Not int(): it also reads signs, underscores and the digits of other scripts.
            if not value.strip().isdigit() or len(value.strip()) > 12:
                raise BrokenFrame("a message of no readable length")
            if int(value) > MOST_FRAME:
                raise BrokenFrame(f"a message of {int(value):,} bytes, and more than {MOST_FRAME:,} are not taken")
            return int(value)
    raise BrokenFrame("a message without its length")


def _parse_message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise BrokenFrame("a message that is no JSON") from None
    if not isinstance(message, dict):
        raise BrokenFrame("a message that is no JSON object")
    return cast(dict[str, Any], message)


# How does one talk with a language server? Requests with an end, and what it asks of us answered or refused.
#
# A server may ask its client to write files and to open windows. Nothing it asks for happens here: it gets to know
# the folder it works in and the settings written in `servers`, and hears no to everything else.

METHOD_NOT_FOUND = -32601
TRY_AGAIN = (-32801, -32802)
"""The server gave up because something changed meanwhile (ContentModified, ServerCancelled)."""
TRIES = 3
SHORTLY = 0.05
OVER = "over"
"""What is heard last, once nothing more can be."""


class LspStream(Protocol):
    """The two ends of the pipe to a server."""

    def output(self) -> AsyncIterator[bytes]: ...

    async def write(self, data: bytes) -> None: ...


class ServerGone(Exception):
    """The server is no longer there, or makes no sense; the message says which."""


class ServerSilent(Exception):
    """No answer within the time there was."""


class RequestDeclined(Exception):
    """The server answered with an error of its own; the message is the server's."""

    def __init__(self, code: object, message: str) -> None:
        super().__init__(message)
        self.code = code


class LspConnection:
    """`settings` answers what the server asks about its settings, by section; `heard` is told what it announces."""

    def __init__(
        self,
        stream: LspStream,
        folder: Mapping[str, str],
        settings: Mapping[str, Any],
        heard: Callable[[str, Any], None],
    ) -> None:
        self._stream, self._folder, self._settings, self._heard = stream, folder, settings, heard
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self.said = 0
        """How much it has announced so far: what is announced later is about what it was told before."""
        self.end: str | None = None
        """Why it is over; None while it goes on."""
        self._writing = asyncio.Lock()
        self._forgetting: set[asyncio.Task[None]] = set()
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        for turn in range(1, TRIES + 1):
            try:
                return await self._request_once(method, params, seconds)
            except RequestDeclined as declined:
                if declined.code not in TRY_AGAIN or turn == TRIES:
                    raise
                await anyio.sleep(SHORTLY)

    async def _request_once(self, method: str, params: Any, seconds: float) -> Any:
        self._asked += 1
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            with anyio.fail_after(seconds):
                await self._send({"id": number, "method": method, "params": params})
                return await answer
        except TimeoutError:
            raise ServerSilent(method) from None
        except asyncio.CancelledError:
            # Nobody waits for the answer any more, and the server may save itself the work.
            task = asyncio.get_running_loop().create_task(self._cancel_request(number))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)
            raise
        finally:
            del self._waiting[number]
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
        for task in (self._listening, *self._forgetting):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening

    async def _send(self, message: Mapping[str, Any]) -> None:
        async with self._writing:
            if self.end is not None:
                raise ServerGone(self.end)
            try:
                await self._stream.write(frame_message({"jsonrpc": "2.0", **message}))
            except BaseException:
                # Half a message cannot be taken back, and the next would be read as the rest of it.
                self.end = "a message to it was cut short"
                raise

    async def _listen(self) -> None:
        frames, end = FrameReader(), "it ended"
        try:
            async for piece in self._stream.output():
                for message in frames.feed(piece):
                    await self._handle_message(message)
        except BrokenFrame as broken:
            end = f"it sent {broken}"
        except (OSError, ServerGone):
            end = "it ended"
        finally:
            self.end = self.end or end
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ServerGone(self.end))
            self._heard(OVER, None)

    async def _handle_message(self, message: Mapping[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._handle_answer(number, message)
        elif number is None:
            self.said += 1
            self._heard(method, message.get("params"))
        else:
            await self._send({"id": number, **self._build_reply(method, message.get("params"))})

    def _handle_answer(self, number: object, message: Mapping[str, Any]) -> None:
        answer = self._waiting.get(number) if type(number) is int else None
        if answer is None or answer.done():
            return
        if "error" in message:
            error = to_fields(message["error"])
            answer.set_exception(RequestDeclined(error.get("code"), to_text(error.get("message")) or "it said no"))
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
                self._heard(method, params)
                return {"result": None}
            case _:
                return {"error": {"code": METHOD_NOT_FOUND, "message": f"`{method[:80]}` is not done here."}}
