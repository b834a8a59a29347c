"""How does a ledger begin that follows another account's? Its first row says what came before."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.posture import PostureChoice
from mcp_server.model.sessions import Hold
from mcp_server.state.engine.rows import RowKind
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.posture import keep_choice
from mcp_server.state.runs import pause_session
from mcp_server.state.verify import SEAL, format_segment_seal


def record_segment(tx: Transaction, fields: Mapping[str, Any], claims: Mapping[str, PostureChoice]) -> None:
    """Write a ledger's first row and take over the earlier restrictions. The row is sealed, because it explains why
    earlier rows are missing."""
    tx.append(RowKind.SEGMENT, {**fields, SEAL: tx.seal.compute_mac(format_segment_seal(fields))})
    for principal, choice in claims.items():
        keep_choice(tx, principal, PostureChoice(claims=choice.claims, epoch=choice.epoch))


def take_over_holds(tx: Transaction, holds: Mapping[tuple[str, str], Hold]) -> None:
    """Pause here what was paused there, until the user resumes it."""
    for (principal, session), hold in holds.items():
        pause_session(tx, principal, session, hold)
