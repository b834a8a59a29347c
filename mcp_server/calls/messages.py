"""How do we reach the person? Through the client if it can ask, and always through `menugate messages`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio.to_thread

from mcp_server.model.context import Client
from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
from mcp_server.model.text import escape_for_person
from mcp_server.state.store import Store

FREE_ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer"}},
    "required": ["answer"],
}


MODEL_ASKS = "The model asks you this, and your answer goes to the model. menugate never asks for a code here:"


def mark_as_models_words(message: str) -> str:
    """Mark every line, or a model could imitate a question of ours and get the answer that is meant for us."""
    return "\n".join([MODEL_ASKS, "", *(f"| {escape_for_person(line, one_line=True)}" for line in message.split("\n"))])


@dataclass(frozen=True)
class PersonChannel:
    store: Store
    signature_reader: Callable[[str], tuple[tuple[str, str], tuple[str, str]] | None]
    ignore_file_reader: Callable[[str], str]
    hooks_folder_reader: Callable[[str], str]
    session: Session
    client: Client

    async def tell(self, message: str, attachments: Sequence[str] = ()) -> str:
        return await self.store.leave_message(self.session.id, message, attachments, self.session.principal)

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        return await anyio.to_thread.run_sync(self.signature_reader, repository)

    async def find_ignore_file(self, repository: str) -> str:
        return await anyio.to_thread.run_sync(self.ignore_file_reader, repository)

    async def find_hooks_folder(self, repository: str) -> str:
        return await anyio.to_thread.run_sync(self.hooks_folder_reader, repository)

    def is_reachable(self) -> bool:
        return self.client.can("elicitation")

    async def ask(self, key: str, message: str) -> tuple[str, str | None]:
        params = {"message": mark_as_models_words(message), "requestedSchema": FREE_ANSWER}
        try:
            reply = await self.client.request(key, "elicitation/create", params)
        except Refusal as refused:
            # No answer is not an error: the message is kept either way.
            return ("timeout" if refused.problem.code is Code.TIMEOUT else "cancel"), None
        content = cast(Mapping[str, Any], reply.get("content") or {})
        answer = content.get("answer")
        return str(reply.get("action", "cancel")), None if answer is None else str(answer)
