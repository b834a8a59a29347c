"""Which messages were left for the person while they were away?"""

import json
from collections.abc import Sequence

from mcp_server.model.text import escape_surrogates
from mcp_server.state.engine.rows import Message
from mcp_server.state.engine.transaction import Transaction, View


def leave_message(tx: Transaction, message: Message) -> str:
    fields = {"at": tx.clock.now_ns(), "session": message.session, "text": message.text}
    # Not `canonical`, which truncates: the person gets the whole text.
    fields |= {"attachments": list(message.attachments), "principal": message.principal}
    body = json.dumps(fields)
    tx.run("INSERT INTO messages (id, body) VALUES (:id, :body)", id=message.id, body=body)
    return message.id


def load_messages(view: View) -> Sequence[Message]:
    rows = view.fetch_all("SELECT id, read, body FROM messages ORDER BY number")
    found = ((row["id"], bool(row["read"]), json.loads(row["body"])) for row in rows)
    return [
        Message(
            id, one["at"], one["session"], one["text"], tuple(one["attachments"]), read, str(one.get("principal", ""))
        )
        for id, read, one in found
    ]


def mark_messages_read(tx: Transaction, ids: Sequence[str]) -> None:
    for id in ids:
        tx.run("UPDATE messages SET read = 1 WHERE id = :id", id=escape_surrogates(id))
