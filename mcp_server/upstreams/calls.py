"""How does one call run on its server? Sent, watched, and answered with a result or with why there is none."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from mcp_server.model.upstreams import UpstreamCaller, WireResult
from mcp_server.upstreams.connection import Connection
from mcp_server.upstreams.instance import UpstreamInstance
from mcp_server.upstreams.messages import LinkClosed
from mcp_server.upstreams.peer import Answered, Asked, Failed, InboxItem, Noticed, OpenRequest, UpstreamError

CANCEL_SECONDS = 1.0
"""For telling a server that nobody waits for its answer."""


@dataclass(eq=False)
class UpstreamCall:
    instance: UpstreamInstance
    method: str
    params: Mapping[str, Any]
    caller: UpstreamCaller
    seconds_left: float
    """Of the time that the server may take; it does not pass while the server waits for the user."""

    async def run(self) -> WireResult:
        connection = await self.instance.connect()
        try:
            request = await connection.send_call(self.method, self.params, self.caller)
        except LinkClosed as closed:
            # Nothing was sent: start it again.
            connection.peer.close(closed)
            connection = await self.instance.connect()
            request = await self._send_again(connection)
        try:
            return await self._follow(connection, request)
        except asyncio.CancelledError:
            await self._cancel(connection, request, "the client cancelled the call")
            raise
        finally:
            connection.finish(request)

    async def _send_again(self, connection: Connection) -> OpenRequest:
        try:
            return await connection.send_call(self.method, self.params, self.caller)
        except LinkClosed as closed:
            raise self._build_fault(str(closed)) from None

    async def _follow(self, connection: Connection, request: OpenRequest) -> WireResult:
        while True:
            match await self._get_next(connection, request):
                case Answered(result):
                    connection.answered += 1
                    return result
                case Failed(error):
                    if isinstance(error, LinkClosed):
                        raise self._build_fault(str(error))
                    connection.answered += 1
                    raise self._build_error(error)
                case Noticed(method, params):
                    await self._pass_on(method, params)
                case Asked() as asked:
                    await connection.peer.reply(asked, UpstreamError(-32600, "menugate does not relay questions yet"))

    async def _get_next(self, connection: Connection, request: OpenRequest) -> InboxItem:
        began = anyio.current_time()
        with anyio.move_on_after(self.seconds_left):
            item = await request.get()
            self.seconds_left -= anyio.current_time() - began
            return item
        await self._cancel(connection, request, "it took too long")
        name = self.instance.mount.name
        raise Refusal(
            Problem(
                Code.TIMEOUT,
                f"The server `{name}` did not answer in time and was told to stop; it may have done part of its work.",
                f"Check what it did before you try again. The user can change `timeout:` of `{name}` in menugate.yaml.",
            )
        )

    async def _cancel(self, connection: Connection, request: OpenRequest, reason: str) -> None:
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(LinkClosed):
            await connection.cancel(request, reason)

    async def _pass_on(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass progress and log messages on to the client."""
        if method == "notifications/progress":
            done, total, message = params.get("progress"), params.get("total"), params.get("message")
            if self.caller.progress is not None and (amount := read_number(done)) is not None:
                words = message if isinstance(message, str) else None
                await self.caller.progress(amount, read_number(total), words)
        elif isinstance(level := params.get("level"), str):
            logger = params.get("logger")
            await self.caller.client.log(level, params.get("data"), logger if isinstance(logger, str) else None)

    def _build_fault(self, reason: str) -> Refusal:
        message = f"The server `{self.instance.mount.name}` did not answer: {to_one_line(reason)}."
        return Refusal(Problem(Code.UPSTREAM_FAULT, message, "The next call starts it again if it has ended."))

    def _build_error(self, error: UpstreamError) -> Refusal:
        """A protocol error of the server's; `data` has all of it."""
        says = to_one_line(error.message) or f"error {error.code}"
        message = f"The server `{self.instance.mount.name}` refused: {says}"
        return Refusal(Problem(Code.TOOL_FAILED, message, "", {"error": error.to_wire()}))


def read_number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
