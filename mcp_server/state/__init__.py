"""What is remembered: sessions, posture, outbox, ledger."""

from mcp_server.state.reader import Reader
from mcp_server.state.record import (
    Asked,
    Changed,
    Clock,
    Condition,
    Intent,
    Kept,
    Message,
    Moved,
    Origin,
    Outcome,
    Refused,
    Row,
    RowKind,
    Wanted,
)
from mcp_server.state.store import Store
from mcp_server.state.verify import Report

__all__ = [
    "Asked",
    "Changed",
    "Clock",
    "Condition",
    "Intent",
    "Kept",
    "Message",
    "Moved",
    "Origin",
    "Outcome",
    "Reader",
    "Refused",
    "Report",
    "Row",
    "RowKind",
    "Store",
    "Wanted",
]
