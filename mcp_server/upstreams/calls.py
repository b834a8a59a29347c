"""How does one call run on its server? Sent, watched, and answered with a result or with why there is none.

If the server asks the user something and the client cannot be asked during a call, the call is parked: it waits on the
server while the client answers, and goes on when the client calls again with the answer.
"""

import asyncio
import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
from msgspec import Struct, field

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from mcp_server.model.upstreams import HttpTarget, UpstreamCaller, WireResult
from mcp_server.upstreams.connection import ELICITATION_DONE, Connection
from mcp_server.upstreams.instance import UpstreamInstance
from mcp_server.upstreams.messages import LinkClosed
from mcp_server.upstreams.peer import (
    INVALID_REQUEST,
    Answered,
    Asked,
    Failed,
    InboxItem,
    Noticed,
    OpenRequest,
    UpstreamError,
)
from mcp_server.upstreams.questions import (
    CANCELLED,
    ELICIT,
    Answers,
    Round,
    build_round_of_request,
    find_missing_ability,
    list_elicitations,
    read_round_of_result,
)
from mcp_server.upstreams.visits import (
    FINISH_SECONDS,
    build_unfinished_refusal,
    build_unseen_refusal,
    check_consent,
    list_addresses,
    read_visit,
)

CANCEL_SECONDS = 1.0
"""For telling a server that nobody waits for its answer."""
MAX_ROUNDS = 20
LOST_ANSWERS: Mapping[str, str] = {
    "SSE stream ended": "the connection ended before its answer",
    "SSE stream failed": "the connection failed before its answer",
    "Server returned an error response": "it answers with an HTTP error",
    "Unexpected content type": "its answer is neither JSON nor a stream of events",
    "Failed to parse": "its answer is not a JSON-RPC message",
    "server answered a request with 202": "it took the call and sent no answer",
}
"""How the errors begin that the SDK's HTTP transport gives in the server's place, and what they mean."""


class Parked(Exception):
    """The call waits for an answer that comes with another request."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("parked")
        self.cause = cause


class CallLimits(Struct, frozen=True):
    """How a call is sent, beside its params."""

    seconds: float
    """How long the server may take. The time does not pass while it waits for the user."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """More headers for servers that are reached over HTTP."""


@dataclass(eq=False)
class UpstreamCall:
    instance: UpstreamInstance
    method: str
    params: Mapping[str, Any]
    caller: UpstreamCaller
    limits: CallLimits
    round: Round | None = None
    """The questions it waits for."""
    rounds: int = 0
    _connection: Connection | None = None
    _request: OpenRequest | None = None
    _in_turn: Connection | None = None
    _done: bool = False
    _sent_again: bool = False
    _visited: set[str] = dataclasses.field(default_factory=set[str])
    """The addresses that the user was sent to."""
    _seconds_left: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self._seconds_left = self.limits.seconds

    async def run(self) -> WireResult:
        """Send it and follow it to its end, or raise `Parked`."""
        self.instance.hold()
        try:
            await self._send(self.params, again=True)
        except BaseException:
            self.finish()
            raise
        return await self._follow()

    async def resume(self, caller: UpstreamCaller) -> WireResult:
        """Go on with a parked call, now that its client brings the answers."""
        self.caller = caller
        if self._connection is not None and self._request in self._connection.calls:
            self._connection.calls[self._request] = caller
        return await self._follow()

    def finish(self) -> None:
        """Give back what it holds; once."""
        if self._done:
            return
        self._done = True
        self._leave_turn()
        if self._connection is not None and self._request is not None:
            self._connection.finish(self._request)
        self.instance.release()

    async def abandon(self, reason: str) -> None:
        """Tell the server that nobody waits any more."""
        if self._connection is not None and self._request is not None:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(LinkClosed):
                await self._connection.cancel(self._request, reason)
        self.finish()

    async def _send(self, params: Mapping[str, Any], again: bool = False) -> None:
        """`again`: if it could not be sent, the server is started again. Nothing ran, so nothing runs twice."""
        connection = await self.instance.connect()
        await self._take_turn(connection)
        try:
            self._request = await connection.send_call(self.method, params, self.caller, self.limits.headers)
            self._connection = connection
        except LinkClosed as closed:
            connection.peer.close(closed)
            self._leave_turn()
            if not again:
                raise self._build_fault(closed) from None
            await self._send(params)

    async def _take_turn(self, connection: Connection) -> None:
        """Calls of different sessions take turns where a question would not say whose it is."""
        if connection.asks and not connection.agreement.modern:
            await connection.turns.take(f"{self.caller.principal} {self.caller.session}")
            self._in_turn = connection

    def _leave_turn(self) -> None:
        if self._in_turn is not None:
            turns, self._in_turn = self._in_turn.turns, None
            turns.give_back()

    async def _follow(self) -> WireResult:
        try:
            while True:
                if self.round is not None:
                    await self._answer(self.round)
                    self.round = None
                result = await self._read_result()
                if result is not None:
                    self.finish()
                    return result
        except Parked:
            raise
        except asyncio.CancelledError:
            await self.abandon("the client cancelled the call")
            raise
        except BaseException:
            self.finish()
            raise

    async def _read_result(self) -> WireResult | None:
        """Return the result, or None if the server asks something first; the questions are in `round` then."""
        while True:
            connection, item = await self._get_next()
            match item:
                case Answered(result):
                    connection.answered += 1
                    if result.get("resultType") != "input_required":
                        return result
                    self._begin_round(self._read_round(result))
                    return None
                case Failed(error):
                    if isinstance(error, LinkClosed):
                        raise self._build_fault(error)
                    if self._lost_session(error):
                        connection.peer.close(LinkClosed("the server has forgotten the session"))
                        await self._send(self.params)
                        continue
                    if (lost := self._find_lost_answer(error)) is not None:
                        raise self._build_fault(lost)
                    connection.answered += 1
                    if (visit := read_visit(error)) is None:
                        raise self._build_error(error)
                    self._begin_visit(visit)
                    return None
                case Noticed(method, params):
                    await self._pass_on(method, params)
                case Asked() as asked:
                    self._begin_round(build_round_of_request(asked))
                    return None

    def _lost_session(self, error: UpstreamError) -> bool:
        """Has the server forgotten our session, before it ran anything? Then the call is sent again, once."""
        lost = error.code == INVALID_REQUEST and "session" in error.message.lower()
        if not lost or self._sent_again or not isinstance(self.instance.mount.target, HttpTarget):
            return False
        self._sent_again = True
        return True

    def _find_lost_answer(self, error: UpstreamError) -> LinkClosed | None:
        if not isinstance(self.instance.mount.target, HttpTarget):
            return None
        return next(
            (LinkClosed(says) for begins, says in LOST_ANSWERS.items() if error.message.startswith(begins)), None
        )

    async def _get_next(self) -> tuple[Connection, InboxItem]:
        assert self._connection is not None and self._request is not None
        began = anyio.current_time()
        with anyio.move_on_after(self._seconds_left):
            item = await self._request.get()
            self._seconds_left -= anyio.current_time() - began
            return self._connection, item
        await self.abandon("it took too long")
        name = self.instance.mount.name
        message = f"The server `{name}` did not answer in time and was told to stop; it may have done part of its work."
        way_out = (
            f"Check what it did before you try again. The user can change `timeout:` of `{name}` in menugate.yaml."
        )
        raise Refusal(Problem(Code.TIMEOUT, message, way_out))

    # What does the server ask, and who answers?

    def _read_round(self, result: Mapping[str, Any]) -> Round:
        try:
            return read_round_of_result(result)
        except UpstreamError as error:
            raise self._build_error(error) from None

    def _begin_round(self, new: Round) -> None:
        self.rounds += 1
        if self.rounds > MAX_ROUNDS:
            raise self._build_fault(LinkClosed(f"it asked more than {MAX_ROUNDS} times"))
        self.round = new

    def _begin_visit(self, visit: Round) -> None:
        addresses = set(list_addresses(visit))
        if addresses <= self._visited:
            raise build_unfinished_refusal(self.instance.mount.name)
        self._visited |= addresses
        self._begin_round(visit)

    async def _answer(self, current: Round) -> None:
        """Ask the user, and bring the server the answers; or raise `Parked`."""
        assert self._connection is not None and self._request is not None
        connection = self._connection
        connection.waiting.add(self._request)
        connection.settle_questions()
        self._leave_turn()
        answers = await self._ask_user(current)
        if current.asked is None:
            await self._send_answers(current, answers)
            return
        await self._take_turn(connection)
        connection.waiting.discard(self._request)
        with suppress(LinkClosed):
            await connection.peer.reply(current.asked, answers if isinstance(answers, UpstreamError) else answers[""])

    async def _ask_user(self, current: Round) -> Answers | UpstreamError:
        assert self._connection is not None and self._request is not None
        roots = {key: self._list_roots() for key, (method, _) in current.questions.items() if method != ELICIT}
        theirs = {key: one for key, one in current.questions.items() if key not in roots}
        if not theirs:
            return roots
        if missing := find_missing_ability(theirs, self.caller):
            return UpstreamError(INVALID_REQUEST, f"this client does not support {missing}")
        for elicitation in list_elicitations(theirs.values()):
            self._connection.note_elicitation(elicitation, self._request, self.caller)
        try:
            return {**roots, **await current.ask(self.instance.mount.name, self.caller, theirs)}
        except Refusal:
            return {**roots, **dict.fromkeys(theirs, CANCELLED)}
        except asyncio.CancelledError:
            raise
        except BaseException as cause:
            # However the client's channel ends the call: it goes on when the answer comes.
            raise Parked(cause) from cause

    def _list_roots(self) -> Mapping[str, Any]:
        assert self._connection is not None
        return self._connection.list_roots() if self.instance.mount.roots else {"roots": []}

    async def _send_answers(self, current: Round, answers: Answers | UpstreamError) -> None:
        """Send the request again with the answers in it, as the newest revision does."""
        if isinstance(answers, UpstreamError):
            name = self.instance.mount.name
            raise build_unseen_refusal(name, current) if current.refused else self._build_error(answers)
        assert self._connection is not None and self._request is not None
        if current.refused:
            check_consent(self.instance.mount.name, answers)
            await self._wait_for_visit(self._request, set(list_elicitations(current.questions.values())))
            answers = {}
        self._connection.finish(self._request)
        more: dict[str, Any] = {} if current.state is None else {"requestState": current.state}
        if answers:
            more["inputResponses"] = dict(answers)
        await self._send({**self.params, **more})

    async def _wait_for_visit(self, request: OpenRequest, elicitations: set[str]) -> None:
        """Wait until the server says that the user is done in the browser; not every server does."""
        with anyio.move_on_after(FINISH_SECONDS):
            while elicitations:
                item = await request.get()
                if isinstance(item, Noticed):
                    await self._pass_on(item.method, item.params)
                    if item.method == ELICITATION_DONE:
                        elicitations.discard(str(item.params.get("elicitationId")))

    # What does the caller get to know?

    async def _pass_on(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass progress and log messages on to the client."""
        if method == "notifications/progress":
            done, total, message = params.get("progress"), params.get("total"), params.get("message")
            if self.caller.progress is not None and (amount := read_number(done)) is not None:
                words = message if isinstance(message, str) else None
                await self.caller.progress(amount, read_number(total), words)
        elif method == ELICITATION_DONE:
            await self.caller.client.end_elicitation(str(params.get("elicitationId")))
        elif isinstance(level := params.get("level"), str):
            logger = params.get("logger")
            await self.caller.client.log(level, params.get("data"), logger if isinstance(logger, str) else None)

    def _build_fault(self, reason: LinkClosed) -> Refusal:
        message = f"The server `{self.instance.mount.name}` did not answer: {to_one_line(str(reason))}."
        return Refusal(Problem(Code.UPSTREAM_FAULT, message, "The next call starts it again if it has ended."))

    def _build_error(self, error: UpstreamError) -> Refusal:
        """A protocol error of the server's; `data` has all of it."""
        says = to_one_line(error.message) or f"error {error.code}"
        message = f"The server `{self.instance.mount.name}` refused: {says}"
        return Refusal(Problem(Code.TOOL_FAILED, message, "", {"error": error.to_wire()}))


def read_number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
