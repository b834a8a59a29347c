"""What can be done to the state? Each deed is one function over one open transaction, or over a mere view of the file.

Deeds run in the writer's thread. They return what the caller gets, and write nothing when the answer is `Moved` or
`Changed`. Their SQL is plain enough for every engine.
"""

from mcp_server.state.deeds.approvals import Reply, Terms, answer, approval, approvals, ask, commence, standing
from mcp_server.state.deeds.ledger import changes, intend, record, sign_checkpoint, transition, trust, unhealthy
from mcp_server.state.deeds.memory import Learned, forget_entry, memories, memory, remember
from mcp_server.state.deeds.notes import Folded, fold, note, noted
from mcp_server.state.deeds.outbox import leave_message, messages, read_messages
from mcp_server.state.deeds.postures import choice, choices
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
from mcp_server.state.deeds.runs import (
    calls_of,
    deliver,
    go_on,
    holds,
    keep_thought,
    pause,
    paused,
    put_report,
    report,
    stop,
    thoughts,
)
from mcp_server.state.deeds.seen import recall_seen, remember_seen
from mcp_server.state.deeds.segments import adopt, take_over
from mcp_server.state.deeds.sessions import (
    forget,
    move,
    pass_by,
    put_session,
    session,
    session_by_handle,
    sessions,
    touch,
)
from mcp_server.state.deeds.steering import conclude, confirm, drop, process_over, settle, steer, unit_over

__all__ = [
    "Folded",
    "Full",
    "Learned",
    "Reply",
    "Terms",
    "Writing",
    "adopt",
    "answer",
    "approval",
    "approvals",
    "as_text",
    "ask",
    "calls_of",
    "changes",
    "choice",
    "choices",
    "commence",
    "conclude",
    "confirm",
    "deliver",
    "document",
    "documents",
    "drop",
    "fold",
    "forget",
    "forget_entry",
    "forget_records",
    "go_on",
    "holds",
    "intend",
    "keep_thought",
    "leave_message",
    "memories",
    "memory",
    "messages",
    "move",
    "note",
    "noted",
    "of_principal",
    "of_session",
    "owned",
    "pass_by",
    "pause",
    "paused",
    "process_over",
    "put_document",
    "put_report",
    "put_session",
    "read_messages",
    "recall_seen",
    "record",
    "remember",
    "remember_seen",
    "report",
    "session",
    "session_by_handle",
    "sessions",
    "settle",
    "sign_checkpoint",
    "standing",
    "steer",
    "stop",
    "take_over",
    "tally",
    "thoughts",
    "touch",
    "transition",
    "trust",
    "unhealthy",
    "unit_over",
]
