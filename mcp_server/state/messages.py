"""Which messages did models leave for the user?"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.rows import Message
from mcp_server.state.engine.transaction import Transaction, View


def leave_message(tx: Transaction, message: Message) -> str:
    fields = {"at": tx.clock.now_ns(), "session": message.session, "text": message.text}
    # Not `format_canonical_json`, which truncates: the user gets the whole text.
    fields |= {"attachments": list(message.attachments), "principal": message.principal}
    body = json.dumps(fields)
    tx.run("INSERT INTO messages (id, body) VALUES (:id, :body)", id=message.id, body=body)
    return message.id


def load_messages(view: View) -> Sequence[Message]:
    rows = view.fetch_all("SELECT id, read, body FROM messages ORDER BY number")
    return [_message_from_row(row) for row in rows]


def _message_from_row(row: Mapping[str, Any]) -> Message:
    body = json.loads(row["body"])
    attachments, principal = tuple(body["attachments"]), str(body.get("principal", ""))
    return Message(row["id"], body["at"], body["session"], body["text"], attachments, bool(row["read"]), principal)


def mark_messages_read(tx: Transaction, ids: Sequence[str]) -> None:
    for id in ids:
        tx.run("UPDATE messages SET read = 1 WHERE id = :id", id=escape_for_model(id))
