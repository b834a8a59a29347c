"""Which answer belongs to which request? JSON-RPC with one server, over any link.

A request has an inbox, in which its progress, the server's questions and the answer arrive in order; whoever made the
request reads it in its own task. What belongs to no request is dropped and counted.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from mcp_server.upstreams.messages import BrokenMessage, Incoming, Link, LinkClosed, Message

MAX_NOTICES = 256
"""How many notices wait in an inbox; of more, the oldest are dropped."""
MAX_OPEN_REPLIES = 64
"""Requests of the server that may be open at once."""
INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32603, -32600, -32601


class UpstreamError(Exception):
    """The server answered with a protocol error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_wire(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message} | ({} if self.data is None else {"data": self.data})


class Answered(Struct, frozen=True):
    result: Mapping[str, Any]


class Failed(Struct, frozen=True):
    error: UpstreamError | LinkClosed


class Noticed(Struct, frozen=True):
    """Progress or a log message."""

    method: str
    params: Mapping[str, Any]


class Asked(Struct, frozen=True):
    """A request of the server's, which waits for our reply."""

    id: int | str
    method: str
    params: Mapping[str, Any]


InboxItem: TypeAlias = Answered | Failed | Noticed | Asked


@dataclass(eq=False)
class OpenRequest:
    id: int
    method: str
    _inbox: deque[InboxItem] = field(default_factory=deque[InboxItem])
    _arrived: anyio.Event = field(default_factory=anyio.Event)
    notices: int = 0

    def put(self, item: InboxItem) -> None:
        if isinstance(item, Noticed):
            if self.notices >= MAX_NOTICES:
                self._inbox.remove(next(one for one in self._inbox if isinstance(one, Noticed)))
            else:
                self.notices += 1
        self._inbox.append(item)
        self._arrived.set()

    async def get(self) -> InboxItem:
        while not self._inbox:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        item = self._inbox.popleft()
        self.notices -= isinstance(item, Noticed)
        return item


@dataclass(eq=False)
class Peer:
    link: Link
    on_request: Callable[[Asked], None]
    """Receives the server's requests; each must be replied to."""
    on_notice: Callable[[Noticed], None]
    faults: Counter[str] = field(default_factory=Counter[str])
    """What arrived and was dropped, by reason."""
    ended: LinkClosed | None = None
    """Why the connection ended; None while it lasts."""
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _open: dict[int, OpenRequest] = field(default_factory=dict[int, OpenRequest])
    _asked: set[int | str] = field(default_factory=set[int | str])
    _closed: anyio.Event = field(default_factory=anyio.Event)
    _tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Receive until the connection ends, or until it is closed."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._stop_when_closed, self._tasks)
            try:
                while True:
                    self._take_safely(await self.link.receive())
            except LinkClosed as closed:
                self.close(closed)

    async def _stop_when_closed(self, tasks: TaskGroup) -> None:
        await self._closed.wait()
        tasks.cancel_scope.cancel()

    def close(self, reason: LinkClosed) -> None:
        """Send nothing more, and fail what is still open."""
        if self.ended is None:
            self.ended = reason
        self._closed.set()
        for request in list(self._open.values()):
            request.put(Failed(self.ended))
        self._open.clear()

    async def send_request(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str], reports: bool = False
    ) -> OpenRequest:
        """Send, and return the request whose inbox gets the answer. `reports`: ask for progress."""
        if self.ended is not None:
            raise self.ended
        request = OpenRequest(next(self._ids), method)
        if reports:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": request.id}}
        self._open[request.id] = request
        message: Message = {"jsonrpc": "2.0", "id": request.id, "method": method, "params": dict(params)}
        try:
            await self.link.send(message, headers)
        except BaseException:
            self._open.pop(request.id, None)
            raise
        return request

    async def ask(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Send, and return the answer; for requests that need nothing else."""
        request = await self.send_request(method, params, headers)
        try:
            while True:
                match await request.get():
                    case Answered(result):
                        return result
                    case Failed(error):
                        raise error
                    case _:
                        pass
        finally:
            self.forget(request)

    def forget(self, request: OpenRequest) -> bool:
        """Stop waiting; an answer that still comes is dropped. Returns whether there was none yet."""
        return self._open.pop(request.id, None) is not None

    async def cancel(self, request: OpenRequest, reason: str, headers: Mapping[str, str]) -> None:
        """Tell the server that nobody waits for this any more."""
        if self.forget(request):
            await self.notify("notifications/cancelled", {"requestId": request.id, "reason": reason}, headers)

    async def notify(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        if self.ended is None:
            await self.link.send({"jsonrpc": "2.0", "method": method, "params": dict(params)}, headers)

    async def reply(self, asked: Asked, result: Mapping[str, Any] | UpstreamError) -> None:
        if asked.id not in self._asked:
            return
        self._asked.discard(asked.id)
        end = {"error": result.to_wire()} if isinstance(result, UpstreamError) else {"result": dict(result)}
        if self.ended is None:
            await self.link.send({"jsonrpc": "2.0", "id": asked.id, **end}, {})

    def run_soon(self, work: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(work, *given)

    def reply_soon(self, asked: Asked, result: Mapping[str, Any] | UpstreamError) -> None:
        self.run_soon(self._reply_quietly, asked, result)

    async def _reply_quietly(self, asked: Asked, result: Mapping[str, Any] | UpstreamError) -> None:
        try:
            await self.reply(asked, result)
        except LinkClosed as closed:
            self.close(closed)

    def _take_safely(self, item: Incoming) -> None:
        try:
            self._take(item)
        except (TypeError, ValueError, AttributeError, KeyError):
            self.faults["a message has another shape than the protocol's"] += 1

    def _take(self, item: Incoming) -> None:
        if isinstance(item, BrokenMessage):
            self.faults[item.reason] += 1
            if item.answers is not None and (request := self._open.pop(item.answers, None)) is not None:
                request.put(Failed(LinkClosed(item.reason)))
            return
        method, id = item.get("method"), item.get("id")
        if isinstance(method, str):
            params: Any = item.get("params")
            self._take_call(method, id, cast(dict[str, Any], params) if isinstance(params, dict) else {})
        else:
            self._take_answer(id, item)

    def _take_call(self, method: str, id: Any, params: dict[str, Any]) -> None:
        if id is None:
            if method == "notifications/progress":
                self._take_progress(params)
            else:
                self.on_notice(Noticed(method, params))
            return
        if type(id) not in (int, str) or id in self._asked:
            self.faults["a request has no usable id"] += 1
            return
        asked = Asked(id, method, params)
        self._asked.add(id)
        if len(self._asked) > MAX_OPEN_REPLIES:
            self.reply_soon(asked, UpstreamError(INTERNAL_ERROR, "too many requests at once"))
        elif method == "ping":
            self.reply_soon(asked, {})
        else:
            self.on_request(asked)

    def _take_progress(self, params: dict[str, Any]) -> None:
        token: Any = params.get("progressToken")
        if type(token) is int and (request := self._open.get(token)) is not None:
            request.put(Noticed("notifications/progress", params))
        else:
            self.faults["progress of no request"] += 1

    def _take_answer(self, id: Any, item: Message) -> None:
        # `1` and not `"1"` or `1.0`: an answer to another id is never an answer to this one.
        request = self._open.pop(id, None) if type(id) is int else None
        if request is None:
            self.faults["an answer to no request"] += 1
            return
        result, error = item.get("result"), item.get("error")
        if isinstance(result, dict):
            request.put(Answered(cast(dict[str, Any], result)))
        elif isinstance(error, dict):
            request.put(Failed(read_error(cast(dict[str, Any], error))))
        else:
            self.faults["an answer without a result"] += 1
            request.put(Failed(LinkClosed("its answer is neither a result nor an error")))


def read_error(error: Mapping[str, Any]) -> UpstreamError:
    code, message = error.get("code"), error.get("message")
    return UpstreamError(
        code if type(code) is int else INTERNAL_ERROR, message if isinstance(message, str) else "", error.get("data")
    )
