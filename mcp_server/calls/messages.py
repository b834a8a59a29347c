"""How do we reach the person? Through the client if it can ask, and always through `menugate messages`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.approval_form import is_too_soon
from mcp_server.calls.withdrawal import withdraw_when_answered
from mcp_server.model.context import Client
from mcp_server.model.results import Code, Done, Ending, Question, Refusal, Relayed
from mcp_server.model.sessions import Session
from mcp_server.model.text import escape_for_model, escape_for_person
from mcp_server.state import messages, runs
from mcp_server.state.engine.rows import Clock, Message, Reply
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


MESSAGE = "message"
"""The name of the one question that `message_user` asks."""


class PersonChannel(Struct, frozen=True):
    store: Store
    clock: Clock
    signature_reader: Callable[[str], tuple[tuple[str, str], tuple[str, str]] | None]
    ignore_file_reader: Callable[[str], str]
    hooks_folder_reader: Callable[[str], str]
    session: Session
    client: Client
    by_handle: bool = False
    """Only a menu handle leads back to the session: it has no connection."""

    async def tell(self, message: str, attachments: Sequence[str] = (), asks: bool = False) -> str:
        session = self.session
        return await self.store.leave_message(
            session.key, message, attachments, session.principal, asks, self.by_handle
        )

    async def tell_and_wait(self, message: str, attachments: Sequence[str] = ()) -> tuple[str, str | None, str]:
        # In the newer protocol era the call comes back with the answer, and the message was left the first time.
        left, _, _ = self.client.get_note(MESSAGE).partition(" ")
        id = left or await self.tell(message, attachments, asks=True)
        action, answer = "ended", None
        if (reply := await self._find_reply(id)) is None:
            question = message + ("\n\nAttached: " + ", ".join(attachments) if attachments else "")
            async with withdraw_when_answered(self.store, partial(self._is_over, id)):
                action, answer = await self.ask(MESSAGE, question, note=id)
            reply = await self._find_reply(id)
        if reply is not None:
            await self.store.write(partial(messages.mark_reply_delivered, id=id))
            return "accept", reply.text, id
        if answer is not None:
            answered = Reply(answer)
            await self.store.write(partial(messages.reply_to_message, id=id, reply=answered, delivered=True))
        return action, answer, id

    async def _find_reply(self, id: str) -> Reply | None:
        message = await self.store.read(partial(messages.find_message, id=id))
        return message.reply if message else None

    async def _is_over(self, id: str) -> bool:
        """Say whether nobody waits for an answer in the client any more: it came at a terminal, or the run is over."""
        if await self._find_reply(id) is not None:
            return True
        return bool(self.session.run) and await self.store.read(partial(runs.is_delivered, run=self.session.run))

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        return await anyio.to_thread.run_sync(self.signature_reader, repository)

    async def find_ignore_file(self, repository: str) -> str:
        return await anyio.to_thread.run_sync(self.ignore_file_reader, repository)

    async def find_hooks_folder(self, repository: str) -> str:
        return await anyio.to_thread.run_sync(self.hooks_folder_reader, repository)

    def is_reachable(self) -> bool:
        return self.client.can("elicitation")

    async def ask(self, key: str, message: str, note: str = "") -> tuple[str, str | None]:
        params = {"message": mark_as_models_words(message), "requestedSchema": FREE_ANSWER}
        # The time travels with the question, because in the newer protocol era it ends the call.
        note = self.client.get_note(key) or f"{note} {self.clock.now_ns()}"
        try:
            reply = await self.client.request(key, "elicitation/create", params, note)
        except Refusal as refused:
            # No answer is not an error: the message is kept either way.
            return ("timeout" if refused.problem.code is Code.TIMEOUT else "cancel"), None
        if is_too_soon(self.clock, int(note.rpartition(" ")[2])):
            return "automatic", None
        if reply.get("action") != "accept":
            return str(reply.get("action", "cancel")), None
        content = cast(Mapping[str, Any], reply.get("content") or {})
        answer = content.get("answer") or ""
        if not isinstance(answer, str):
            return "misshapen", None
        # Programs accept forms that they leave empty, and you could no longer reply at a terminal.
        return ("accept", answer) if answer.strip() else ("cancel", None)


# What did the user reply? A reply reaches the model with the next result of its session.


@dataclass
class Replies:
    store: Store
    find_connected_sessions: Callable[[], Collection[str]]
    """Finds the sessions, in all servers of this workspace, whose client is connected."""
    pending: tuple[Message, ...] | None = None
    """None if the state has to be read. Nearly always empty, which the pipeline looks at before it asks more."""
    _changes: int = 0

    def __post_init__(self) -> None:
        self.store.on_change(self.forget)

    def forget(self) -> None:
        """The state has changed, perhaps by a reply: the call that noticed it takes the reply along."""
        self.pending, self._changes = None, self._changes + 1

    async def refresh(self) -> None:
        before = self._changes
        found = tuple(await self.store.read(messages.load_pending_replies))
        self.pending = found if before == self._changes else None

    async def add_to_ending(self, ending: Ending, session: Session) -> Ending:
        """Add the replies to this session, each once. A result with structured content waits for the next one, because
        some clients show nothing else of it."""
        if self.pending is None:
            await self.refresh()
        known = [one for one in self.pending or () if one.principal == session.principal]
        if (
            not known
            or isinstance(ending, Question)
            or (isinstance(ending, Done | Relayed) and ending.data is not None)
        ):
            return ending
        connected: Collection[str] = ()
        if not all(messages.is_reply_to(one, session) for one in known):
            connected = await anyio.to_thread.run_sync(self.find_connected_sessions)
        if not any(messages.is_reply_for(one, session, connected) for one in known):
            return ending
        take = partial(messages.take_replies, session=session, connected=connected)
        text = "\n\n".join(format_reply(one) for one in await self.store.write(take))
        await self.refresh()
        if isinstance(ending, Relayed):
            return replace(ending, blocks=(*ending.blocks, {"type": "text", "text": text}))
        if isinstance(ending, Done):
            return replace(ending, text="\n\n".join(filter(None, (ending.text, text))))
        return replace(ending, way_out="\n\n".join(filter(None, (ending.way_out, text))))


def format_reply(message: Message) -> str:
    assert message.reply is not None, "only messages with a reply are taken"
    return f"[The user replied to your message {message.id}: {escape_for_model(message.reply.text)}]"
