"""What is taken over from a state that this account did not seal? Where its ledger ended, and what restricts.

The new ledger begins with one row about it, sealed like everything worth forging. The rest of the foreign state
(approvals, todos, memory, sessions) stays where it is and has no effect.
"""

import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_server.model.posture import PostureChoice
from mcp_server.model.results import Code
from mcp_server.model.sessions import Hold
from mcp_server.state.engine.chain import GENESIS, SLOT, Anchor, Checkpoint, LedgerKey, is_valid_signature
from mcp_server.state.engine.rows import Clock, Condition, Message
from mcp_server.state.engine.sqlite import Database, make_refusal, set_aside
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.location import find_foreign_state
from mcp_server.state.messages import leave_message
from mcp_server.state.peek import Held, StatePeek, load_foreign_holds, open_read_only
from mcp_server.state.posture import load_choices

MOST_PEOPLE = 1000
NARROWED = (
    "What was chosen there narrows what may be done and widens nothing, until you choose a posture at a terminal, such "
    "as `menugate profile normal`; its approvals, todos and memory do not count. `menugate status` shows what holds."
)
FOREIGN = (
    "the state in `{state}` was sealed with a key that this account does not have; it is left as it is, and this "
    "account keeps a state of its own beside it"
)
TAMPERED = (
    "the state was not sealed with this account's key, although this account has worked here: it was exchanged, or the "
    "key was lost; it was put aside as `{state}`"
)


@dataclass(frozen=True, slots=True)
class Segment:
    state: str
    """The file, relative to this state."""
    tampered: bool = False
    rows: int = 0
    head: str = GENESIS
    claims: dict[str, PostureChoice] = field(default_factory=dict[str, PostureChoice])
    unread: bool = False
    """True if nothing could be read from it."""

    @property
    def reason(self) -> str:
        said = (TAMPERED if self.tampered else FOREIGN).format(state=self.state)
        return f"{said}; what was chosen there cannot be read" if self.unread else said

    @property
    def fields(self) -> dict[str, Any]:
        tampered = self.tampered or None
        return {
            "reason": self.reason,
            "state": self.state,
            "rows": self.rows,
            "head": self.head,
            **({"tampered": tampered} if tampered else {}),
        }


@dataclass(frozen=True, slots=True)
class StateFile:
    """What the file contained before anything was written."""

    version: int
    lost: str = ""
    segment: Segment | None = None
    """The state in this file or beside it that this account did not seal."""
    held: Held = field(default_factory=dict[tuple[str, str], Hold])
    """Whom it pauses."""


def read_segment(path: Path, state: str, tampered: bool) -> Segment:
    try:
        with open_read_only(path) as plain:
            tables = [name for (name,) in plain.execute("SELECT name FROM sqlite_master")]
            if not tables:
                return Segment(state, tampered)
            if "workspace" not in tables:
                from mcp_server.state.open import make_unfit_refusal

                raise make_unfit_refusal(path, None)
            view = StatePeek(plain, None)
            end = view.fetch_one("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1") or {
                "seq": 0,
                "hash": GENESIS,
            }
            people = view.fetch_one("SELECT count(*) AS number FROM posture") or {"number": 0}
            if not isinstance(end["seq"], int) or people["number"] > MOST_PEOPLE:
                raise ValueError
            claims = {principal: one for principal, one in load_choices(view).items() if isinstance(principal, str)}  # pyright: ignore[reportUnnecessaryIsInstance]  # whatever a stranger wrote
            # If that account's choices were lost, the most restricted ones apply there, and so they do here.
            lost = view.fetch_one("SELECT 1 FROM workspace WHERE lost <> ''") is not None
            return Segment(state, tampered, end["seq"], str(end["hash"])[: len(GENESIS)], claims, unread=lost)
    except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError):
        return Segment(state, tampered, unread=True)


def is_state_sealed(link: Database, anchor: bytes | None, key: LedgerKey) -> bool:
    """Did this account seal the state? Its anchor tells; if that is damaged, its newest checkpoint."""
    if anchor and Anchor.parse_line(anchor[:SLOT], key):
        return True
    if link.cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = 'checkpoints'").fetchone() == (0,):
        return False
    columns = "number, seq, hash, at, key, signature"
    rows = link.cursor.execute(f"SELECT {columns} FROM checkpoints ORDER BY number DESC LIMIT 2").fetchall()  # noqa: S608  # our own words
    found = [Checkpoint(*row) for row in rows]
    if not found or found[0].key != key.public_key:
        return False
    return is_valid_signature(
        found[0].format_statement(found[1] if len(found) > 1 else None), found[0].signature, key.public_key
    )


def find_segment_beside(path: Path) -> Segment | None:
    """Read another account's state when this account begins one of its own beside it."""
    foreign = find_foreign_state(path.parent)
    if foreign is None or not foreign.exists():
        return None
    return read_segment(foreign, os.path.relpath(foreign, path.parent), tampered=False)


def replace_state_file(path: Path, link: Database, clock: Clock, mine: bool) -> tuple[Database, StateFile]:
    """Move aside, as evidence, a file that is in this account's place but was not sealed by it."""
    link.close()
    if not mine and find_foreign_state(path.parent) is None:
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            "another account began to keep its state in this workspace at the same moment; nothing ran.",
            "Start menugate again: this account then keeps a state of its own beside it.",
        )
    name = set_aside(path, str(clock.now_ns()))
    aside = path.with_name(name)
    return Database(path), StateFile(
        0, segment=read_segment(aside, name, tampered=True), held=load_foreign_holds(aside)
    )


def describe_lost_state(found: StateFile, anchor: bytes | None, key: LedgerKey, suspicion: str) -> str:
    """Say what is missing, if nothing is where something was."""
    if found.version:
        return ""
    if suspicion == "gone":
        return "the state file was taken away while menugate ran"
    known = Anchor.parse_line(anchor, key) if anchor else None
    if anchor and (known is None or known.seq > 0):
        return f"the state file is gone; its anchor says that it had {known.seq if known else 'some'} rows"
    return ""


def leave_notices(tx: Transaction, condition: Condition, segment: Segment | None) -> None:
    notices = dict.fromkeys(condition.alarms, "`menugate audit verify` says more.")
    if segment:
        notices[segment.reason] = NARROWED
    if condition.lost:
        notices[condition.lost] = "Until you choose a posture again, only reading is allowed."
    for notice, end in notices.items():
        text = f"{notice[0].upper()}{notice[1:]}. {end}"
        leave_message(tx, Message(f"{tx.process}-{tx.seq}-{len(notice)}", 0, "", text))
