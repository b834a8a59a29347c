"""How does a command change the state? In one transaction, without recording a start and a stop.

That is enough for a state in good order: this account's own and up to date, with a ledger that ends where its anchor
says. Any other state (none yet, damaged, replaced, or with rows that a killed process left without an anchor) is opened
as a server opens it, which records what was found.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from mcp_server.model.results import Code
from mcp_server.state.engine.chain import ANCHOR, SLOT, Anchor, AnchorFile, LedgerKey
from mcp_server.state.engine.disk import DiskReserve
from mcp_server.state.engine.rows import Condition, WallClock
from mcp_server.state.engine.schema import CURRENT, read_schema_version
from mcp_server.state.engine.sqlite import (
    Database,
    DatabaseLock,
    find_network_share,
    make_busy_refusal,
    refusal_from_error,
)
from mcp_server.state.engine.transaction import StateWorkspace, Transaction, read_ledger_head
from mcp_server.state.ids import make_process_name
from mcp_server.state.ledger import sign_checkpoint
from mcp_server.state.location import is_known_state, read_anchor_bytes
from mcp_server.state.posture_changes import record_process_end, settle_dead_calls

CHECKPOINT_ROWS = 1000
"""With this many unsigned rows, a command signs them, because perhaps no server runs here."""

T = TypeVar("T")


def change_state(path: Path, secrets: Path | None, work: Callable[[Transaction], T]) -> T:
    """Run the change, and return its result once it is durable. Raises `Refusal` if it cannot be written."""
    process = make_process_name()
    try:
        workspace = _open_in_order(path, secrets, process)
        if workspace is None:
            return _change_as_server(path, secrets, process, work)
        try:
            with workspace.open_transaction() as tx:
                settle_dead_calls(tx)
                result = work(tx)
                if tx.seq - (tx.checkpoint.seq if tx.checkpoint else 0) >= CHECKPOINT_ROWS:
                    sign_checkpoint(tx)
            return result
        finally:
            workspace.close()
    except Exception as error:
        refusal = refusal_from_error(error, path)
        if refusal and refusal.problem.code is Code.STORE_FULL:
            # Calls that already run elsewhere need a little room for their last rows.
            DiskReserve(path.with_suffix(".reserve")).spend()
        raise refusal or error from None


def recover_state(path: Path, secrets: Path | None) -> None:
    """Do what every start does: check the state, move damaged files aside, anchor the rest."""
    _change_as_server(path, secrets, make_process_name(), lambda _: None)


def _open_in_order(path: Path, secrets: Path | None, process: str) -> StateWorkspace | None:
    """Open a state in good order, and keep it locked; None if it needs anything else first."""
    key = LedgerKey.load(secrets)
    linked = any(folder.is_symlink() for folder in path.parents[:3])
    if key is None or linked or not path.is_file() or not is_known_state(secrets, path.parent):
        return None
    with ExitStack() as opened:
        lock = DatabaseLock(path.with_suffix(".lock"))
        opened.callback(lock.close)
        lock.acquire()
        link = Database(path)
        opened.callback(link.close)
        if find_network_share(path.parent) or link.find_damage() or read_schema_version(link) != CURRENT:
            return None
        anchor = _open_matching_anchor(link, path.with_name(ANCHOR), key)
        if anchor is None:
            return None
        opened.callback(anchor.close)
        link.make_durable()
        reserve = DiskReserve(path.with_suffix(".reserve"))
        workspace = StateWorkspace(link, lock, reserve, anchor, key, WallClock(), process, Condition())
        # The reserve is for calls that already run, to record their end; a new change must not use it up.
        workspace.refuse_when_full()
        opened.pop_all()
        return workspace


def _open_matching_anchor(link: Database, path: Path, key: LedgerKey) -> AnchorFile | None:
    """Open the anchor if it names the newest row and the newest checkpoint. Nobody writes while we hold the lock."""
    line, head = read_anchor_bytes(path), read_ledger_head(link)
    known = Anchor.parse_line(line[:SLOT], key) if line else None
    checkpoints = head.checkpoint.number if head.checkpoint else 0
    fits = known is not None and (known.seq, known.hash, known.checkpoints) == (head.seq, head.hash, checkpoints)
    return AnchorFile(path) if fits and head.seq else None


def _change_as_server(path: Path, secrets: Path | None, process: str, work: Callable[[Transaction], T]) -> T:
    """Run the change between a start and an end on record."""
    # Seldom needed, and it imports everything that repairs a state.
    from mcp_server.state.open import open_workspace

    workspace = open_workspace(path, secrets, WallClock(), process)
    try:
        workspace.refuse_when_full()
        _ = workspace.key.public_key  # imports what signs before the lock is taken
        workspace.lock.acquire()
        if not workspace.link.is_intact():
            raise make_busy_refusal()
        with workspace.open_transaction() as tx:
            result = work(tx)
            record_process_end(tx)
            sign_checkpoint(tx)
        return result
    finally:
        workspace.close()
