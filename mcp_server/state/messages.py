"""Which messages did models leave for the user, and what did the user reply?"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcp_server.model.sessions import Session, parse_session_id
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.rows import Message, Reply
from mcp_server.state.engine.transaction import Transaction, View


def leave_message(tx: Transaction, message: Message) -> str:
    fields = {"at": tx.clock.now_ns(), "session": message.session, "text": message.text}
    # Not `format_canonical_json`, which truncates: the user gets the whole text.
    fields |= {"attachments": list(message.attachments), "principal": message.principal}
    flags = {name: True for name in ("asks", "by_handle") if getattr(message, name)}
    body = json.dumps(fields | flags)
    tx.run("INSERT INTO messages (id, body) VALUES (:id, :body)", id=message.id, body=body)
    return message.id


def put_note(tx: Transaction, id: str, session: str, text: str, principal: str) -> None:
    """Leave a note under a name of its own. A later one of that name takes its place and is unread."""
    drop_note(tx, id)
    leave_message(tx, Message(id, 0, session, text, principal=principal))


def drop_note(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM messages WHERE id = :id", id=escape_for_model(id))


def rewrite_note(tx: Transaction, id: str, text: str) -> None:
    """Give a note another text, if there is such a note. It stays where it is, read or not."""
    row = tx.fetch_one("SELECT body FROM messages WHERE id = :id", id=escape_for_model(id))
    if row:
        body = json.dumps({**json.loads(row["body"]), "text": text})
        tx.run("UPDATE messages SET body = :body WHERE id = :id", body=body, id=escape_for_model(id))


def load_messages(view: View) -> Sequence[Message]:
    return [_message_from_row(row) for row in view.fetch_all("SELECT * FROM messages ORDER BY number")]


def find_message(view: View, id: str) -> Message | None:
    row = view.fetch_one("SELECT * FROM messages WHERE id = :id", id=escape_for_model(id))
    return _message_from_row(row) if row else None


def load_pending_replies(view: View) -> Sequence[Message]:
    """Load the messages whose reply no call has taken to its model yet."""
    rows = view.fetch_all("SELECT * FROM messages WHERE reply <> '' AND delivered = 0 ORDER BY number")
    pending = [_message_from_row(row) for row in rows]
    return [_give_to_any_session(one) if _is_handle_gone(view, one) else one for one in pending]


def _is_handle_gone(view: View, message: Message) -> bool:
    stored = "SELECT 1 FROM sessions WHERE id = :id"
    return message.by_handle and view.fetch_one(stored, id=escape_for_model(message.session)) is None


def _give_to_any_session(message: Message) -> Message:
    return replace(message, reply=replace(message.reply, session="") if message.reply else None)


def reply_to_message(tx: Transaction, id: str, reply: Reply, delivered: bool = False) -> Message | None:
    """Return the message with its reply; None if there is no such message, or it has one already. A reply is the end of
    it: the message counts as read."""
    message = find_message(tx, id)
    if message is None or message.reply is not None:
        return None
    made = replace(reply, at=tx.clock.now_ns())
    body = json.dumps({"text": made.text, "at": made.at, "session": made.session})
    tx.run(
        "UPDATE messages SET reply = :body, delivered = :delivered, read = 1 WHERE id = :id",
        body=body,
        delivered=int(delivered),
        id=escape_for_model(id),
    )
    # So that a call that waits for it hears of it.
    tx.changed = True
    return replace(message, reply=made, read=True)


def take_replies(tx: Transaction, session: Session, connected: Collection[str]) -> Sequence[Message]:
    """Return the replies to this session, each to one call only."""
    due = [message for message in load_pending_replies(tx) if is_reply_for(message, session, connected)]
    for message in due:
        mark_reply_delivered(tx, message.id)
    return due


def mark_reply_delivered(tx: Transaction, id: str) -> None:
    tx.run("UPDATE messages SET delivered = 1 WHERE id = :id", id=escape_for_model(id))


def is_reply_to(message: Message, session: Session) -> bool:
    """True if the reply is to this session's place, or to whichever session of the principal calls next."""
    is_own = message.reply is not None and message.reply.session in ("", session.key)
    return is_own and message.principal == session.principal


def is_reply_for(message: Message, session: Session, connected: Collection[str]) -> bool:
    """True if this session's next result should carry the reply. That includes a reply to a session whose client has
    left and that no handle can reach again."""
    if is_reply_to(message, session):
        return True
    is_left = not message.by_handle and parse_session_id(message.session) not in connected
    return is_left and message.reply is not None and message.principal == session.principal


def mark_messages_read(tx: Transaction, ids: Sequence[str]) -> None:
    for id in ids:
        tx.run("UPDATE messages SET read = 1 WHERE id = :id", id=escape_for_model(id))


def _message_from_row(row: Mapping[str, Any]) -> Message:
    body = json.loads(row["body"])
    # A state of an older layout has no such column.
    reply = json.loads(row["reply"]) if row.get("reply") else None
    return Message(
        row["id"],
        body["at"],
        body["session"],
        body["text"],
        tuple(body["attachments"]),
        read=bool(row["read"]),
        principal=str(body.get("principal", "")),
        asks=body.get("asks") is True,
        by_handle=body.get("by_handle") is True,
        reply=Reply(str(reply["text"]), reply["at"], str(reply["session"])) if reply else None,
    )
