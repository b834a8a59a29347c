"""How is the person reached? Through the client where it can ask, and always through the outbox."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio.to_thread

from mcp_server.calls.approval_text import escape
from mcp_server.model.context import Client
from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state.store import Store

FREE_ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer"}},
    "required": ["answer"],
}


MODEL_ASKS = "The model asks, and your answer goes to the model. menugate only passes this on and needs no code for it:"


def mark_as_models_words(message: str) -> str:
    """Otherwise a model could write what looks like a question of ours, and have an answer that is meant for us."""
    return "\n".join([MODEL_ASKS, "", *(f"| {escape(line)}" for line in message.split("\n"))])


@dataclass(frozen=True)
class PersonChannel:
    store: Store
    signed: Callable[[str], tuple[tuple[str, str], tuple[str, str]] | None]
    unwanted: Callable[[str], str]
    hooked: Callable[[str], str]
    session: Session
    client: Client

    async def tell(self, message: str, attachments: Sequence[str] = ()) -> str:
        return await self.store.leave_message(self.session.id, message, attachments, self.session.principal)

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        return await anyio.to_thread.run_sync(self.signed, repository)

    async def find_ignore_file(self, repository: str) -> str:
        return await anyio.to_thread.run_sync(self.unwanted, repository)

    async def find_hooks_folder(self, repository: str) -> str:
        return await anyio.to_thread.run_sync(self.hooked, repository)

    def is_reachable(self) -> bool:
        return self.client.can("elicitation")

    async def ask(self, key: str, message: str) -> tuple[str, str | None]:
        params = {"message": mark_as_models_words(message), "requestedSchema": FREE_ANSWER}
        try:
            reply = await self.client.request(key, "elicitation/create", params)
        except Refusal as refused:
            # A client that does not answer is not an answer; the message is kept either way.
            return ("timeout" if refused.problem.code is Code.TIMEOUT else "cancel"), None
        content = cast(Mapping[str, Any], reply.get("content") or {})
        answer = content.get("answer")
        return str(reply.get("action", "cancel")), None if answer is None else str(answer)
