"""How does a tool talk to its client? One port over two protocol eras.

In the legacy era a question is a request back over the same stream, and the tool waits. The modern era has no way back:
the call ends with the question, and starts again from the top with the answer and the sealed state it carries. Answers
from earlier rounds travel inside that state.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import CONNECTION_CLOSED, LOG_LEVEL_META_KEY, MISSING_REQUIRED_CLIENT_CAPABILITY, REQUEST_TIMEOUT
from pydantic import BaseModel, ValidationError

from mcp_server.calls.request import Interruption
from mcp_server.model.context import LOG_LEVELS
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.wire.caller import Caller, Context, get_connection
from mcp_server.wire.notifications import Notifier

ASKABLE: dict[str, tuple[type[types.ServerRequest], type[BaseModel]]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
NO_ANSWER: Mapping[str, Any] = {"action": "cancel"}
"""What an answer of the wrong shape counts as."""
CLOSED = (CONNECTION_CLOSED, "Connection closed")
"""How the SDK ends what waits for a client that is gone."""
ELICITATION_DONE = "notifications/elicitation/complete"
LOG_LEVEL = "menugate log level"
"""Where a legacy connection keeps the level that `logging/setLevel` set."""


UNASKED_LEVEL = "info"
"""What a client is taken to want that could have said what, and did not."""
OWN_META = re.compile(r"(?:[\w-]+\.)*(?:modelcontextprotocol|mcp)(?:\.[\w-]+)*/|menugate/")
MAX_META_CHARS = 20_000


class InputRequired(Interruption):
    """Ends the call with questions to the client."""

    def __init__(self, questions: Mapping[str, dict[str, Any]], state: str) -> None:
        super().__init__("waiting for the client")
        self.answer = {"resultType": "input_required", "inputRequests": dict(questions), "requestState": state}


class ClientUnsupported(Interruption):
    """The client lacks something the call cannot do without, and the protocol has an error for that."""

    recorded_as = "unsupported"

    def __init__(self, needed: Mapping[str, Any]) -> None:
        super().__init__("the client cannot do what this call needs")
        self.error = MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"this call needs a client that supports {', '.join(needed)}",
            {"requiredCapabilities": dict(needed)},
        )


class ClientChannel:
    def __init__(self, ctx: Context, caller: Caller, notices: Notifier, patience: float) -> None:
        self._ctx = ctx
        self._caller = caller
        self._notices = notices
        self._patience = patience
        self.name = caller.client
        self._answered: dict[str, Any] = {}
        self._notes: dict[str, str] = {}
        asked: frozenset[str] = frozenset()
        state = (ctx.params or {}).get("requestState")
        if not caller.protocol.asks_in_place and isinstance(state, str):
            # Earlier rounds of this call. We sealed the state, and it is bound to this very request.
            found = json.loads(state)
            self._answered, self._notes = dict(found.get("answered", {})), dict(found.get("notes", {}))
            asked = frozenset(found.get("asked", ()))
        self.carried = asked | self._answered.keys()
        """The questions this call brings back. They are sealed, so that nobody answers what was never asked."""

    def can(self, what: str) -> bool:
        if self._caller.protocol.asks_in_place and not self._ctx.session.can_send_request:
            return False
        have = self._ctx.session.client_capabilities or types.ClientCapabilities()
        form = have.elicitation is not None and (have.elicitation.form is not None or have.elicitation.url is None)
        return {
            "elicitation": form,
            "elicitation.url": have.elicitation is not None and have.elicitation.url is not None,
            "sampling": have.sampling is not None,
            "sampling.tools": have.sampling is not None and have.sampling.tools is not None,
            "roots": have.roots is not None,
        }.get(what, False)

    def get_note(self, key: str) -> str:
        return self._notes.get(key, "") if self._has_answer(key) else ""

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        if note:
            self._notes[key] = note
        return (await self.request_all({key: (method, params)}))[key]

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        for method, params in questions.values():
            self._require(method, params)
        if self._caller.protocol.asks_in_place:
            return {key: await self._ask(method, params) for key, (method, params) in questions.items()}
        open_questions = {
            key: {"method": method, "params": dict(params)}
            for key, (method, params) in questions.items()
            if not self._has_answer(key, method)
        }
        if open_questions:
            state = {"answered": self._answered, "asked": [*open_questions], "notes": self._notes}
            raise InputRequired(open_questions, json.dumps(state))
        return {key: self._answered[key] for key in questions}

    async def announce_change(self, what: str, uri: str = "") -> None:
        await self._notices.announce_change(self._caller.principal, what, uri)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        least = self._get_least_level()
        if not {least, level}.issubset(LOG_LEVELS) or LOG_LEVELS.index(level) < LOG_LEVELS.index(str(least)):
            return
        params = {"level": level, "data": data} | ({"logger": logger} if logger else {})
        note = types.LoggingMessageNotification.model_validate({"method": "notifications/message", "params": params})
        await self._ctx.session.send_notification(note, related_request_id=self._ctx.request_id)

    async def end_elicitation(self, elicitation: str) -> None:
        if self._caller.protocol.asks_in_place:
            await get_connection(self._ctx).notify(ELICITATION_DONE, {"elicitationId": elicitation})

    def _get_least_level(self) -> str | None:
        """A request that may state a level and states none gets no messages; a connection that sets none gets all of
        them."""
        if self._caller.protocol.level_per_request:
            return (self._ctx.meta or {}).get(LOG_LEVEL_META_KEY)
        return get_connection(self._ctx).state.get(LOG_LEVEL, "debug")

    def collect_meta(self) -> Mapping[str, Any]:
        """Collect what of the request's `_meta` a server behind menugate gets: all that is not about the connection to
        menugate, and how much the client wants to read of its log."""
        given: Any = (self._ctx.params or {}).get("_meta")
        meta = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        kept = {key: value for key, value in meta.items() if key != "progressToken" and not OWN_META.match(key)}
        if len(json.dumps(kept)) > MAX_META_CHARS:
            kept = {}
        level = self._get_least_level()
        if not self._caller.protocol.level_per_request and LOG_LEVEL not in get_connection(self._ctx).state:
            level = UNASKED_LEVEL
        return kept | ({LOG_LEVEL_META_KEY: level} if level in LOG_LEVELS else {})

    def _require(self, method: str, params: Mapping[str, Any]) -> None:
        what = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}[
            method
        ]
        what = "elicitation.url" if params.get("mode") == "url" else what
        if self.can(what):
            return
        if not self._caller.protocol.asks_in_place:
            raise ClientUnsupported({what.partition(".")[0]: {}})
        raise Refusal(Problem(Code.TOOL_FAILED, f"this client does not support {what}.", "Continue without asking."))

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        request, answer = ASKABLE[method]
        question = request.model_validate({"method": method, "params": dict(params)})
        try:
            with self._notices.open_dialog() as dialog:
                reply = await self._ctx.session.send_request(
                    question,
                    answer,
                    request_read_timeout_seconds=self._patience,
                    metadata=ServerMessageMetadata(related_request_id=self._ctx.request_id),
                )
        except MCPError as error:
            if (error.code, error.message) == CLOSED:
                message = "the connection ended before the client answered."
                raise Refusal(Problem(Code.CANCELLED, message, "Ask again later.")) from error
            late = error.code == REQUEST_TIMEOUT
            what = "did not answer in time" if late else "answered with an error"
            raise Refusal(
                Problem(Code.TIMEOUT if late else Code.TOOL_FAILED, f"the client {what}.", "Continue without asking.")
            ) from error
        except ValidationError:
            return replace_misshapen_answer(method)
        if dialog.cancelled_caught:
            raise Refusal(Problem(Code.CANCELLED, "menugate stopped before the client answered.", "Ask again later."))
        return reply.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _has_answer(self, key: str, method: str = "elicitation/create") -> bool:
        if key in self._answered:
            return True
        given: Any = cast(dict[str, Any], (self._ctx.params or {}).get("inputResponses") or {}).get(key)
        if given is None or key not in self.carried:
            # Without the sealed question, this answers nothing that we asked about this call.
            return False
        try:
            ASKABLE[method][1].model_validate(given, by_name=False)
        except ValidationError:
            given = replace_misshapen_answer(method)
        self._answered[key] = given
        return True


def replace_misshapen_answer(method: str) -> Mapping[str, Any]:
    """Return what stands in for an unreadable answer. For a form that is a cancellation, not a protocol error: the call
    goes on and reports it. Without any other answer the call cannot go on."""
    if method == "elicitation/create":
        return NO_ANSWER
    wrong = "the client's answer does not have the required form."
    raise Refusal(Problem(Code.TOOL_FAILED, wrong, "Continue without asking."))


def mend_answers(ctx: Context) -> Context:
    """Make every answer pass the SDK, which would refuse the whole request for a single misshapen one. Whether each
    answer fits its own question is checked later. A null is no answer, as if it were absent."""
    params = {key: value for key, value in (ctx.params or {}).items() if (key, value) != ("inputResponses", None)}
    given, state = params.get("inputResponses"), params.get("requestState")
    if "inputResponses" in params and not isinstance(given, Mapping) and isinstance(state, str):
        given = dict.fromkeys(json.loads(state).get("asked", ()), "no object")
    if not isinstance(given, Mapping):
        return replace(ctx, params=params) if ctx.params else ctx
    answers = {
        key: one if _is_readable_answer(one) else NO_ANSWER
        for key, one in cast(Mapping[str, Any], given).items()
        if one is not None
    }
    return replace(ctx, params={**params, "inputResponses": answers})


def _is_readable_answer(given: Any) -> bool:
    for _, answer in ASKABLE.values():
        with suppress(ValidationError):
            answer.model_validate(given, by_name=False)
            return True
    return False
