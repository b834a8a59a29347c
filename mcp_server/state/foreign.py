"""What do we take over from a state that this account did not seal? Only where its ledger ended, and what restricts.

The new ledger begins with a sealed row about it. The rest of the foreign state (approvals, todos, memory, sessions)
stays where it is and has no effect.
"""

import os
import sqlite3
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from mcp_server.model.posture import PostureChoice
from mcp_server.model.results import Code
from mcp_server.model.sessions import Hold
from mcp_server.state.engine.chain import GENESIS, SLOT, Anchor, Checkpoint, LedgerKey, is_valid_signature
from mcp_server.state.engine.rows import Clock, Condition, Message, RowKind
from mcp_server.state.engine.sqlite import Database, make_refusal, set_aside
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.location import find_foreign_state
from mcp_server.state.messages import leave_message
from mcp_server.state.peek import HoldsByPlace, StatePeek, load_foreign_holds, open_read_only
from mcp_server.state.posture import keep_choice, load_choices
from mcp_server.state.runs import pause_session
from mcp_server.state.verify import SEAL, format_segment_seal

MAX_PRINCIPALS = 1000
NARROWED = (
    "Until you choose a posture at a terminal, such as `menugate profile normal`, the choices in that state can forbid "
    "calls but allow none; its approvals, todos and memory do not count. `menugate status` shows what applies."
)
FOREIGN = (
    "the state in `{state}` was sealed with a key that this account does not have, so it stays unchanged, and this "
    "account keeps its own state beside it"
)
TAMPERED = (
    "the state was not sealed with this account's key, although this account has worked here: either the file "
    "was replaced or the key was lost; the file was set aside as `{state}`"
)


class Segment(Struct, frozen=True):
    """A state that this account did not seal: in its place, or beside it."""

    state: str
    """The file, relative to this account's state."""
    tampered: bool = False
    rows: int = 0
    head: str = GENESIS
    claims: dict[str, PostureChoice] = field(default_factory=dict[str, PostureChoice])
    unread: bool = False
    """True if nothing could be read from it."""

    @property
    def reason(self) -> str:
        sentence = (TAMPERED if self.tampered else FOREIGN).format(state=self.state)
        return f"{sentence}; its choices cannot be read" if self.unread else sentence

    @property
    def fields(self) -> dict[str, Any]:
        """What the ledger's first row says; without `tampered` if it is None."""
        about = {"state": self.state, "rows": self.rows, "head": self.head, "tampered": self.tampered or None}
        return {"reason": self.reason, **about}


class StateFile(Struct, frozen=True):
    """What the state file contained before we wrote anything."""

    version: int
    lost: str = ""
    segment: Segment | None = None
    """The state in this file, or beside it, that this account did not seal."""
    holds: HoldsByPlace = field(default_factory=dict[tuple[str, str], Hold])
    """The holds in that state."""


def read_segment(path: Path, state: str, tampered: bool) -> Segment:
    try:
        with open_read_only(path) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
            if not tables:
                return Segment(state, tampered)
            if "workspace" not in tables:
                from mcp_server.state.open import make_unfit_refusal

                raise make_unfit_refusal(path, None)
            view = StatePeek(connection, None)
            last_row = view.fetch_one("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1") or {
                "seq": 0,
                "hash": GENESIS,
            }
            principals = view.fetch_one("SELECT count(*) AS number FROM posture") or {"number": 0}
            if not isinstance(last_row["seq"], int) or principals["number"] > MAX_PRINCIPALS:
                raise ValueError
            claims = {
                principal: choice
                for principal, choice in load_choices(view).items()
                if isinstance(principal, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # whatever a stranger wrote
            }
            # If that account lost its choices, the most restricted ones apply there, and so they do here.
            choices_lost = view.fetch_one("SELECT 1 FROM workspace WHERE lost <> ''") is not None
            return Segment(
                state, tampered, last_row["seq"], str(last_row["hash"])[: len(GENESIS)], claims, unread=choices_lost
            )
    except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError):
        return Segment(state, tampered, unread=True)


def is_state_sealed(link: Database, anchor: bytes | None, key: LedgerKey) -> bool:
    """Did this account seal the state? Asks its anchor or, if that is damaged, its newest checkpoint."""
    if anchor and Anchor.parse_line(anchor[:SLOT], key):
        return True
    if link.cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = 'checkpoints'").fetchone() == (0,):
        return False
    columns = "number, seq, hash, at, key, signature"
    rows = link.cursor.execute(f"SELECT {columns} FROM checkpoints ORDER BY number DESC LIMIT 2").fetchall()  # noqa: S608  # our own words
    checkpoints = [Checkpoint(*row) for row in rows]
    if not checkpoints or checkpoints[0].key != key.public_key:
        return False
    newest, previous = checkpoints[0], checkpoints[1] if len(checkpoints) > 1 else None
    return is_valid_signature(newest.format_statement(previous), newest.signature, key.public_key)


def find_segment_beside(path: Path) -> Segment | None:
    """Read another account's state, when this account begins one of its own beside it."""
    foreign = find_foreign_state(path.parent)
    if foreign is None or not foreign.exists():
        return None
    return read_segment(foreign, os.path.relpath(foreign, path.parent), tampered=False)


def replace_state_file(path: Path, link: Database, clock: Clock, is_own: bool) -> tuple[Database, StateFile]:
    """Set aside a file in this account's place that it did not seal, as evidence."""
    link.close()
    if not is_own and find_foreign_state(path.parent) is None:
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            "another account created its state in this workspace at the same moment; nothing ran.",
            "Start menugate again: this account then keeps a state of its own beside it.",
        )
    name = set_aside(path, str(clock.now_ns()))
    aside = path.with_name(name)
    return Database(path), StateFile(
        0, segment=read_segment(aside, name, tampered=True), holds=load_foreign_holds(aside)
    )


def describe_lost_state(state_file: StateFile, anchor: bytes | None, key: LedgerKey, suspicion: str) -> str:
    """Describe the state that was here and is gone; empty if none is missing."""
    if state_file.version:
        return ""
    if suspicion == "gone":
        return "the state file was removed while menugate ran"
    claimed = Anchor.parse_line(anchor, key) if anchor else None
    if anchor and (claimed is None or claimed.seq > 0):
        return f"the state file is gone; its anchor says that it had {claimed.seq if claimed else 'some'} rows"
    return ""


def record_segment(tx: Transaction, segment: Segment) -> None:
    """Write a ledger's first row and take over the earlier restrictions. The row is sealed, because it explains why
    earlier rows are missing."""
    seal = tx.seal.compute_mac(format_segment_seal(segment.fields))
    tx.append(RowKind.SEGMENT, {**segment.fields, SEAL: seal})
    for principal, choice in segment.claims.items():
        keep_choice(tx, principal, PostureChoice(claims=choice.claims, epoch=choice.epoch))


def take_over_holds(tx: Transaction, holds: HoldsByPlace) -> None:
    """Pause here what was paused there, until the user resumes it."""
    for (principal, session), hold in holds.items():
        pause_session(tx, principal, session, hold)


def leave_notices(tx: Transaction, condition: Condition, segment: Segment | None) -> None:
    notices = dict.fromkeys(condition.alarms, "`menugate audit verify` has the details.")
    if segment:
        notices[segment.reason] = NARROWED
    if condition.lost:
        notices[condition.lost] = "Until you choose a posture again, only reading is allowed."
    for notice, advice in notices.items():
        text = f"{notice[0].upper()}{notice[1:]}. {advice}"
        leave_message(tx, Message(f"{tx.process}-{tx.seq}-{len(notice)}", 0, "", text))
