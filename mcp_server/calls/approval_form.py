"""Did a person answer this form? They typed four characters that only its message shows, and took their time.

Many clients answer by themselves: they accept an empty form within a millisecond, or cancel and decline everything.
None of these is a person's answer, neither approval nor refusal. A program that reads the message and waits cannot be
told from a person; against it the operator has `approvals: out_of_band`.
"""

import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from msgspec import Struct, field

from mcp_server.calls.form_text import fence_text
from mcp_server.model.context import Client
from mcp_server.model.results import Code, Refusal
from mcp_server.state.engine.rows import Clock

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""No characters that can be mistaken for others."""
LENGTH = 4
SOONEST_NS = 10**9
"""Nobody reads a question and answers it in less."""


class FormAnswer(StrEnum):
    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"
    """Perhaps a person, who closed the form or typed something else."""
    NOTHING = "nothing"
    """A program answered, or nobody did."""
    GONE = "gone"
    """The connection or menugate itself ended first, which says nothing about the client."""


MOST_TRIES = 3
"""How often a client may come back without a proper answer. After that the person answers at a terminal."""
TRIES_USED = {FormAnswer.UNCLEAR: 1, FormAnswer.NOTHING: MOST_TRIES, FormAnswer.GONE: 0}
"""A person may have mistyped or closed the form; a client that answers by itself will do so again."""


def count_tries(said: FormAnswer) -> int:
    """Return how many tries an answer uses up; a proper answer ends the question, so it uses none."""
    return TRIES_USED.get(said, 0)


class FormReply(Struct, frozen=True):
    said: FormAnswer
    why: str = ""
    """What was wrong with the answer; continues a sentence that begins with "the client"."""
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def ask_person(
    client: Client, clock: Clock, key: str, message: str, more: Mapping[str, Any] | None = None
) -> FormReply:
    """Ask the person through the client. If that ends the call, the characters and the time travel with it, sealed."""
    code, _, since = client.get_note(key).partition(" ")
    if not since.isdigit():
        code, since = new_code(), str(clock.now_ns())
    try:
        reply = await client.request(
            key, "elicitation/create", build_form(message, code, more or {}), f"{code} {since}"
        )
    except Refusal as refused:
        if refused.problem.code is Code.CANCELLED:
            return FormReply(FormAnswer.GONE, "was disconnected before it answered")
        late = refused.problem.code is Code.TIMEOUT
        return FormReply(
            FormAnswer.NOTHING, "did not answer the question in time" if late else "could not ask the question"
        )
    if is_too_soon(clock, int(since)):
        return FormReply(FormAnswer.NOTHING, "answered within a second, before anyone could have read the question")
    content = cast(Mapping[str, Any], reply.get("content") or {})
    match reply.get("action"):
        case "accept" if "".join(str(content.get("code", "")).split()).upper() == code:
            return FormReply(FormAnswer.YES, content=content)
        case "accept":
            return FormReply(FormAnswer.UNCLEAR, "accepted without the four characters from the question")
        case "decline":
            return FormReply(FormAnswer.NO)
        case _:
            return FormReply(FormAnswer.UNCLEAR, "closed the question without an answer")


def is_too_soon(clock: Clock, since: int) -> bool:
    """Say whether so little time has passed that only a program can have answered."""
    return clock.now_ns() - since <= SOONEST_NS


def build_form(message: str, code: str, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Build the form from strings alone, which every client can show. Only the message holds the characters, so a
    program that fills in the form from its fields does not find them."""
    typed = {"type": "string", "title": "Code", "description": "The four characters at the end of the message."}
    return {
        "message": f"{fence_text(message)}\nTo allow it, type these four characters: {code}",
        "requestedSchema": {"type": "object", "properties": {"code": typed, **more}, "required": ["code"]},
    }


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
