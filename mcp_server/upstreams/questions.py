"""What does a server ask the user? Its questions, marked as its own before they go to the caller's client.

A question of a server is never an approval: it has another key, it says who asks, and its answer goes to the server.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from mcp_server.model.text import escape_for_person
from mcp_server.model.upstreams import UpstreamCaller
from mcp_server.upstreams.peer import INVALID_REQUEST, Asked, UpstreamError

KEY = "upstream-"
"""Prefix of a question's name when a client carries it back and forth."""
ELICIT, LIST_ROOTS = "elicitation/create", "roots/list"
MAX_QUESTIONS = 8
"""Of one round."""
CANCELLED: Mapping[str, Any] = {"action": "cancel"}

WireQuestion: TypeAlias = tuple[str, Mapping[str, Any]]
"""A method and its params."""
Answers: TypeAlias = Mapping[str, Mapping[str, Any]]


@dataclass(eq=False)
class Round:
    """The questions that a call waits for, by the server's own names for them."""

    questions: Mapping[str, WireQuestion]
    asked: Asked | None = None
    """The server's request that these answer; None if the answers go into a new request of ours."""
    state: str | None = None
    """What the server wants to see again with the answers."""
    refused: bool = False
    """The server refused the call until the user has been at the addresses in these questions."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    def name_for_client(self, key: str) -> str:
        return f"{KEY}{self.token}-{list(self.questions).index(key)}"

    async def ask(self, mount: str, caller: UpstreamCaller, keys: Iterable[str]) -> Answers:
        """Ask the client these questions. Raises what the client's channel raises."""
        names = {key: self.name_for_client(key) for key in keys}
        answers = await caller.client.request_all(
            {name: mark_question(mount, self.questions[key]) for key, name in names.items()}
        )
        return {key: answers[name] for key, name in names.items()}


def build_round_of_request(asked: Asked) -> Round:
    return Round({"": (asked.method, asked.params)}, asked=asked)


def read_round_of_result(result: Mapping[str, Any]) -> Round:
    """Read what an unfinished result asks for, or raise `UpstreamError`."""
    wanted, state = result.get("inputRequests"), result.get("requestState")
    questions: dict[str, WireQuestion] = {}
    for key, value in (cast(dict[str, Any], wanted) if isinstance(wanted, dict) else {}).items():
        one = cast(dict[str, Any], value) if isinstance(value, dict) else {}
        method, params = one.get("method"), one.get("params")
        if method not in (ELICIT, LIST_ROOTS) or len(questions) >= MAX_QUESTIONS:
            raise UpstreamError(INVALID_REQUEST, f"it asks for {str(method)[:80]}, which menugate does not offer")
        questions[key] = (method, cast(dict[str, Any], params) if isinstance(params, dict) else {})
    return Round(questions, state=state if isinstance(state, str) else None)


def find_missing_ability(questions: Mapping[str, WireQuestion], caller: UpstreamCaller) -> str | None:
    """Return what the client lacks to show these questions; None if it can."""
    for _, params in questions.values():
        what = "elicitation.url" if params.get("mode") == "url" else "elicitation"
        if not caller.client.can(what):
            return what
    return None


def list_elicitations(questions: Iterable[WireQuestion]) -> list[str]:
    """List the server's own names for what the user does in a browser."""
    named = (params.get("elicitationId") for _, params in questions if params.get("mode") == "url")
    return [one for one in named if isinstance(one, str)]


def mark_question(mount: str, question: WireQuestion) -> WireQuestion:
    method, params = question
    marked = cast(dict[str, Any], escape_texts(params))
    marked["message"] = f"The server `{mount}` asks (this approves nothing in menugate):\n{marked.get('message', '')}"
    if marked.get("mode") == "url":
        # Revisions differ in whether they have it, and clients of those that do insist on it.
        marked.setdefault("elicitationId", secrets.token_urlsafe(12))
    return method, marked


def escape_texts(value: Any) -> Any:
    """Show characters that would be invisible or change how the rest looks."""
    if isinstance(value, str):
        return escape_for_person(value)
    if isinstance(value, dict):
        return {key: escape_texts(one) for key, one in cast(dict[str, Any], value).items()}
    return [escape_texts(one) for one in cast(list[Any], value)] if isinstance(value, list) else value
