"""What is remembered: sessions, posture, outbox, ledger.

The reader for a person's commands is not named here: a server that starts has no use for it and would wait for it.
"""

from mcp_server.state.record import (
    Asked,
    Begun,
    Changed,
    Clock,
    Condition,
    Intent,
    Kept,
    Lapsed,
    Message,
    Moved,
    Origin,
    Outcome,
    Paused,
    Refused,
    Row,
    RowKind,
    Wanted,
)
from mcp_server.state.store import Store
from mcp_server.state.trust.glimpse import glimpse

__all__ = [
    "Asked",
    "Begun",
    "Changed",
    "Clock",
    "Condition",
    "Intent",
    "Kept",
    "Lapsed",
    "Message",
    "Moved",
    "Origin",
    "Outcome",
    "Paused",
    "Refused",
    "Row",
    "RowKind",
    "Store",
    "Wanted",
    "glimpse",
]
