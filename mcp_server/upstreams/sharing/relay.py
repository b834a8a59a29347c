"""What becomes of a guest's messages? The holder passes them on to the server, each for the session that sent it.

Towards the connection, each session of a guest counts as a session of its own, so questions and turns find whom they
are for just as among our own sessions.
"""

import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import TaskGroup
from mcp_types import LOG_LEVEL_META_KEY, SERVER_INFO_META_KEY

from mcp_server.model.context import Client
from mcp_server.model.upstreams import UpstreamCaller
from mcp_server.upstreams.connection import CHANGED_LISTS, Connection
from mcp_server.upstreams.messages import BrokenMessage, LinkClosed, Message
from mcp_server.upstreams.peer import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Answered,
    Asked,
    Failed,
    Noticed,
    OpenRequest,
    UpstreamError,
    read_error,
)
from mcp_server.upstreams.sharing.stream import MessageStream
from mcp_server.upstreams.sharing.words import ASKER, ASKS, CLOSED, PING, PONG, SENDING, SESSION, build_notice

if TYPE_CHECKING:
    from mcp_server.upstreams.instance import UpstreamInstance

CANCEL_SECONDS = 1.0
MAX_OPEN = 1000
"""Requests of one guest."""
OWN_WORDS = "menugate/"
"""Of a holder to its guests; from a server they mean nothing."""
CANCELLED, PROGRESS, LOG = "notifications/cancelled", "notifications/progress", "notifications/message"
UPDATED, ACKNOWLEDGED = "notifications/resources/updated", "notifications/subscriptions/acknowledged"

log = logging.getLogger("menugate")


@dataclass(eq=False)
class RelayedInstance:
    """What a holder gives its guests, once it runs."""

    instance: "UpstreamInstance"
    connection: Connection


@dataclass(eq=False)
class GuestRelay:
    """One guest of an instance."""

    name: str
    stream: MessageStream
    principal: str
    client: Client
    """Stands for the guest's clients, which are asked through the guest."""
    wait_for_instance: Callable[[], Awaitable[RelayedInstance]]
    shared: RelayedInstance | None = None
    _requests: dict[int, "RelayedRequest"] = field(default_factory=dict[int, "RelayedRequest"])
    _questions: dict[int, "RelayedQuestion"] = field(default_factory=dict[int, "RelayedQuestion"])
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _watched: set[str] = field(default_factory=set[str])
    _level: str | None = None

    async def serve(self) -> None:
        """Serve it until it goes, or until the stream is ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._join)
            try:
                while True:
                    item = await self.stream.receive()
                    if not isinstance(item, BrokenMessage):
                        self._take(item, tasks)
            except LinkClosed:
                pass
            finally:
                tasks.cancel_scope.cancel()
                self._leave()

    async def _join(self) -> None:
        shared = await self.wait_for_instance()
        shared.instance.add_guest()
        self.shared = shared
        if shared.connection.asks:
            self.tell_that_it_asks()

    def tell_that_it_asks(self) -> None:
        with suppress(LinkClosed):
            self.stream.send(build_notice(ASKS))

    def _leave(self) -> None:
        if self.shared is not None:
            self.shared.instance.unsubscribe(self.name)
            self.shared.instance.remove_guest()

    def _take(self, item: Message, tasks: TaskGroup) -> None:
        method, id, given = item.get("method"), item.get("id"), item.get("params")
        params = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        if method == PING:
            self.stream.send(build_notice(PONG))
        elif method == CANCELLED:
            if (request := self._requests.get(params.get("requestId", 0))) is not None:
                request.scope.cancel()
        elif isinstance(method, str) and type(id) is int:
            if id in self._requests or len(self._requests) >= MAX_OPEN:
                raise LinkClosed("it does not speak as menugate does")
            self._requests[id] = request = RelayedRequest(self, id, method, params)
            tasks.start_soon(request.run)
        elif method is None and type(id) is int and (question := self._questions.pop(id, None)) is not None:
            question.take(item)
        elif isinstance(method, str):
            tasks.start_soon(self._pass_notice_on, method, params)

    async def _pass_notice_on(self, method: str, params: Mapping[str, Any]) -> None:
        """The server knows already that its handshake is done."""
        if method != "notifications/initialized":
            connection = (await self.wait_for_instance()).connection
            try:
                await connection.peer.notify(method, *connection.agreement.stamp(method, params))
            except LinkClosed:
                return

    def finish(self, request: "RelayedRequest") -> None:
        self._requests.pop(request.id, None)

    def answer(self, id: int, result: Mapping[str, Any] | UpstreamError) -> None:
        end = {"error": result.to_wire()} if isinstance(result, UpstreamError) else {"result": result}
        self.stream.send({"jsonrpc": "2.0", "id": id, **end})

    def end(self, reason: str) -> None:
        """Tell the guest that the instance has ended."""
        try:
            self.stream.send(build_notice(CLOSED, reason=reason))
        except LinkClosed:
            return

    def build_caller(self, session: str, progress: bool) -> UpstreamCaller:
        meta = {LOG_LEVEL_META_KEY: self._level} if self._level else {}
        # The connection only looks whether there is a receiver; the relay itself passes progress on.
        receiver = ignore_progress if progress else None
        return UpstreamCaller(self.principal, f"{self.name} {session}", self.client, receiver, meta)

    def set_level(self, level: Any) -> None:
        self._level = level if isinstance(level, str) else None

    def put_question(self, question: "RelayedQuestion", params: Mapping[str, Any], method: str) -> None:
        id = next(self._ids)
        self._questions[id] = question
        self.stream.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def drop_question(self, question: "RelayedQuestion") -> None:
        for id in [id for id, one in self._questions.items() if one is question]:
            del self._questions[id]

    # What the server says to everybody.

    def take_notice(self, notice: Noticed) -> None:
        """Tell the guest what the server says to nobody in particular."""
        if notice.method == LOG and not any(request.is_call for request in self._requests.values()):
            return
        if notice.method == UPDATED and notice.params.get("uri") not in self._watched:
            return
        if notice.method in (ACKNOWLEDGED, CANCELLED, PROGRESS) or notice.method.startswith(OWN_WORDS):
            return
        params = {key: value for key, value in notice.params.items() if key != "_meta"}
        try:
            self.stream.send(build_notice(notice.method, **(params if notice.method not in CHANGED_LISTS else {})))
        except LinkClosed:
            return

    async def watch(self, uris: set[str]) -> None:
        """Watch these resources for the guest, and no others."""
        shared = await self.wait_for_instance()
        for uri in self._watched - uris:
            shared.instance.unsubscribe(self.name, uri)
        added, self._watched = uris - self._watched, uris
        for uri in added:
            await shared.instance.subscribe(uri, self.name)

    def get_watched(self) -> set[str]:
        return set(self._watched)


async def ignore_progress(done: float, /, total: float | None = None, message: str | None = None) -> None:
    return None


@dataclass(eq=False)
class RelayedQuestion:
    """A question of the server's that waits for a guest's answer."""

    reply: Mapping[str, Any] | UpstreamError = field(default_factory=dict[str, Any])
    answered: anyio.Event = field(default_factory=anyio.Event)

    def take(self, item: Message) -> None:
        result, error = item.get("result"), item.get("error")
        if isinstance(result, dict):
            self.reply = cast(dict[str, Any], result)
        else:
            self.reply = read_error(cast(dict[str, Any], error) if isinstance(error, dict) else {})
        self.answered.set()


@dataclass(eq=False)
class RelayedRequest:
    """One request of a guest."""

    relay: GuestRelay
    id: int
    method: str
    params: dict[str, Any]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _in_turn: bool = False

    @property
    def is_call(self) -> bool:
        return SESSION in self._get_meta()

    def _get_meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta")
        return cast(dict[str, Any], meta) if isinstance(meta, dict) else {}

    async def run(self) -> None:
        try:
            with self.scope:
                shared = await self.relay.wait_for_instance()
                if (result := await self._run(shared)) is not None:
                    self.relay.answer(self.id, result)
        except LinkClosed as closed:
            self.relay.end(str(closed))
        except Exception as error:
            log.debug("a guest's request failed", exc_info=error)
            self.relay.end("the menugate process that runs it failed")
        finally:
            self.relay.finish(self)

    async def _run(self, shared: RelayedInstance) -> Mapping[str, Any] | UpstreamError | None:
        agreed = shared.connection.agreement
        match self.method:
            case "initialize" | "server/discover":
                return answer_handshake(shared.connection, self.method == "server/discover")
            case "logging/setLevel":
                self.relay.set_level(self.params.get("level"))
                return {}
            case "resources/subscribe" | "resources/unsubscribe":
                uri, watched = str(self.params.get("uri")), self.relay.get_watched()
                await self.relay.watch(watched | {uri} if self.method.endswith("/subscribe") else watched - {uri})
                return {}
            case "subscriptions/listen":
                await self._listen()
            case _ if self.is_call:
                return await self._call(shared)
            case _:
                try:
                    with anyio.fail_after(shared.instance.mount.call_seconds):
                        return await shared.connection.peer.ask(self.method, *agreed.stamp(self.method, self.params))
                except UpstreamError as error:
                    return error
                except TimeoutError:
                    return UpstreamError(INTERNAL_ERROR, "it did not answer in time")
        return None

    async def _listen(self) -> None:
        """A guest listens until it wants to listen to something else."""
        given = self.params.get("notifications")
        wanted = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        uris = {uri for uri in wanted.get("resourceSubscriptions", ()) if isinstance(uri, str)}
        await self.relay.watch(uris)
        self.relay.stream.send(build_notice(ACKNOWLEDGED, notifications={**wanted, "resourceSubscriptions": [*uris]}))
        await anyio.sleep_forever()

    async def _call(self, shared: RelayedInstance) -> Mapping[str, Any] | UpstreamError:
        meta = dict(self._get_meta())
        session, progress = str(meta.pop(SESSION)), meta.pop("progressToken", None) is not None
        params = {key: value for key, value in self.params.items() if key != "_meta"}
        caller = self.relay.build_caller(session, progress)
        connection, request = shared.connection, None
        shared.instance.hold()
        try:
            await self._take_turn(connection, caller)
            if connection.peer.ended is not None:
                raise connection.peer.ended
            # From here on the guest cannot know that nothing ran.
            await self.relay.stream.send_now(build_notice(SENDING, id=self.id))
            sent = {**params, "_meta": meta} if meta else params
            request = await connection.send_call(self.method, sent, caller, {})
            return await self._follow(connection, request, caller)
        except BaseException:
            if request is not None:
                with anyio.move_on_after(CANCEL_SECONDS, shield=True):
                    await connection.cancel(request, "the client cancelled the call")
            raise
        finally:
            self._leave_turn(connection)
            if request is not None:
                connection.finish(request)
            shared.instance.release()

    async def _take_turn(self, connection: Connection, caller: UpstreamCaller) -> None:
        if connection.asks and not connection.agreement.modern:
            await connection.turns.take(f"{caller.principal} {caller.session}")
            self._in_turn = True

    def _leave_turn(self, connection: Connection) -> None:
        if self._in_turn:
            self._in_turn = False
            connection.turns.give_back()

    async def _follow(
        self, connection: Connection, request: OpenRequest, caller: UpstreamCaller
    ) -> Mapping[str, Any] | UpstreamError:
        while True:
            match await request.get():
                case Answered(result):
                    connection.answered += 1
                    return result
                case Failed(error):
                    if isinstance(error, LinkClosed):
                        raise error
                    connection.answered += 1
                    return error
                case Noticed(method, params):
                    if method == PROGRESS:
                        self.relay.stream.send(build_notice(PROGRESS, **{**params, "progressToken": self.id}))
                case Asked() as asked:
                    connection.waiting.add(request)
                    connection.settle_questions()
                    self._leave_turn(connection)
                    reply = await self._ask_guest(asked)
                    await self._take_turn(connection, caller)
                    connection.waiting.discard(request)
                    await connection.peer.reply(asked, reply)

    async def _ask_guest(self, asked: Asked) -> Mapping[str, Any] | UpstreamError:
        extra = asked.params.get("_meta")
        marked = {**(cast(dict[str, Any], extra) if isinstance(extra, dict) else {}), ASKER: self.id}
        question = RelayedQuestion()
        self.relay.put_question(question, {**asked.params, "_meta": marked}, asked.method)
        try:
            await question.answered.wait()
        finally:
            self.relay.drop_question(question)
        return question.reply


def answer_handshake(connection: Connection, discovers: bool) -> Mapping[str, Any] | UpstreamError:
    """Answer as the server itself answered us."""
    agreed = connection.agreement
    known = {"capabilities": agreed.capabilities, "instructions": agreed.instructions}
    if agreed.modern != discovers:
        return UpstreamError(METHOD_NOT_FOUND, "it speaks another revision")
    if agreed.modern:
        return {**known, "supportedVersions": [agreed.protocol], "_meta": {SERVER_INFO_META_KEY: agreed.server}}
    return {**known, "protocolVersion": agreed.protocol, "serverInfo": agreed.server}
