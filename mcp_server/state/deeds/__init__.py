"""What can be done to the state? Each deed is one function over one open transaction, or over a mere view of the file.

Deeds run in the writer's thread. They return what the caller gets, and write nothing when the answer is `Moved` or
`Changed`. Their SQL is plain enough for every engine.
"""

from mcp_server.state.deeds.ledger import changes, conclude, intend, record, sign_checkpoint, transition, trust
from mcp_server.state.deeds.notes import Folded, fold, note
from mcp_server.state.deeds.outbox import leave_message, messages, read_messages
from mcp_server.state.deeds.postures import AXES, axes, posture, postures, set_posture
from mcp_server.state.deeds.records import (
    Full,
    Writing,
    as_text,
    document,
    documents,
    forget_records,
    of_principal,
    of_session,
    owned,
    put_document,
    tally,
)
from mcp_server.state.deeds.seen import recall_seen, remember_seen
from mcp_server.state.deeds.sessions import forget, move, put_session, session, session_by_handle, sessions, touch

__all__ = [
    "AXES",
    "Folded",
    "Full",
    "Writing",
    "as_text",
    "axes",
    "changes",
    "conclude",
    "document",
    "documents",
    "fold",
    "forget",
    "forget_records",
    "intend",
    "leave_message",
    "messages",
    "move",
    "note",
    "of_principal",
    "of_session",
    "owned",
    "posture",
    "postures",
    "put_document",
    "put_session",
    "read_messages",
    "recall_seen",
    "record",
    "remember_seen",
    "session",
    "session_by_handle",
    "sessions",
    "set_posture",
    "sign_checkpoint",
    "tally",
    "touch",
    "transition",
    "trust",
]
