"""What becomes of a ledger that does not go on from one of this account's? Its first row says what came before."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.posture import PostureChoice
from mcp_server.model.sessions import Hold
from mcp_server.state.engine.rows import RowKind
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.posture import keep_choice
from mcp_server.state.runs import pause
from mcp_server.state.verify import SEAL, about_adoption, about_segment, adopted, taken_over


def take_over(tx: Transaction, fields: Mapping[str, Any], claims: Mapping[str, PostureChoice]) -> None:
    """The first row of a ledger, sealed because it excuses something, and what the earlier state narrows."""
    tx.append(RowKind.SEGMENT, {**fields, SEAL: tx.seal.mac(about_segment(fields))})
    for principal, choice in claims.items():
        keep_choice(tx, principal, PostureChoice(claims=choice.claims, epoch=choice.epoch))


def hold_on(tx: Transaction, held: Mapping[tuple[str, str], Hold]) -> None:
    """What was held there is held here, until the person lets it go on."""
    for (principal, session), hold in held.items():
        pause(tx, principal, session, hold)


def adopt(tx: Transaction) -> None:
    """The person spoke at a terminal: what was put aside is held against the record no more."""
    found = taken_over(tx)
    if found and found.get("tampered") and not adopted(tx):
        reason = "the person chose a posture at a terminal"
        tx.append(RowKind.ADOPTION, {"reason": reason, SEAL: tx.seal.mac(about_adoption(tx))})
