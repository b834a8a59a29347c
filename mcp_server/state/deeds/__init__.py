"""What can be done to the state? Each deed is one function over one open transaction, or over a mere view of the file.

Deeds run in the writer's thread. They return what the caller gets, and write nothing when the answer is `Moved` or
`Changed`. Their SQL is plain enough for every engine.
"""

from mcp_server.state.deeds.ledger import changes, intend, record, sign_checkpoint, transition, unhealthy
from mcp_server.state.deeds.outbox import leave_message, messages, read_messages
from mcp_server.state.deeds.postures import choice, choices
from mcp_server.state.deeds.seen import recall_seen, remember_seen
from mcp_server.state.deeds.sessions import forget, move, put_session, session, session_by_handle, sessions, touch
from mcp_server.state.deeds.steering import conclude, confirm, drop, process_over, settle, steer, unit_over

__all__ = [
    "changes",
    "choice",
    "choices",
    "conclude",
    "confirm",
    "drop",
    "forget",
    "intend",
    "leave_message",
    "messages",
    "move",
    "process_over",
    "put_session",
    "read_messages",
    "recall_seen",
    "record",
    "remember_seen",
    "session",
    "session_by_handle",
    "sessions",
    "settle",
    "sign_checkpoint",
    "steer",
    "touch",
    "transition",
    "unhealthy",
    "unit_over",
]
