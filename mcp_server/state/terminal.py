"""How does a command change the state? In one transaction of its own, with no start and no stop on record.

That is enough for a state in good order: this account's own and up to date, with a ledger that ends where its anchor
says. Any other (none yet, a damaged one, one that was exchanged, rows that a killed process left without an anchor) is
opened as a server opens it, which puts on record what was found.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from mcp_server.model.results import Code
from mcp_server.state.engine.chain import ANCHOR, SLOT, Anchor, AnchorFile, LedgerKey
from mcp_server.state.engine.disk import DiskReserve
from mcp_server.state.engine.rows import Condition, RowKind, WallClock
from mcp_server.state.engine.schema import CURRENT, read_schema_version
from mcp_server.state.engine.sqlite import (
    Database,
    DatabaseLock,
    find_network_share,
    make_busy_refusal,
    refusal_from_error,
)
from mcp_server.state.engine.transaction import StateWorkspace, Transaction, View, read_ledger_head
from mcp_server.state.ids import make_process_name
from mcp_server.state.ledger import sign_checkpoint
from mcp_server.state.location import is_known_state, read_anchor_bytes
from mcp_server.state.posture_changes import record_process_end, settle_dead_calls
from mcp_server.state.verify import read_body

CHECKPOINT_ROWS = 1000
"""So many rows without a signature are signed even if no server runs here."""
LIVES = 1000
"""How many of the newest starts and ends are considered."""

T = TypeVar("T")


def change_state(path: Path, secrets: Path | None, work: Callable[[Transaction], T]) -> T:
    """Run the change, and return its result once it is durable. Raises `Refusal` if it cannot be written."""
    process = make_process_name()
    try:
        workspace = _open_in_order(path, secrets, process)
        started = workspace is None
        workspace = workspace or _open_as_server(path, secrets, process)
        try:
            return _commit(workspace, work, started)
        finally:
            workspace.close()
    except Exception as error:
        refusal = refusal_from_error(error, path)
        if refusal and refusal.problem.code is Code.STORE_FULL:
            # What already runs elsewhere needs a little room for its last rows.
            DiskReserve(path.with_suffix(".reserve")).spend()
        raise refusal or error from None


def recover_state(path: Path, secrets: Path | None) -> None:
    """Do what every start does: check the state, move damaged files aside, anchor the rest."""
    workspace = _open_as_server(path, secrets, make_process_name())
    try:
        _commit(workspace, lambda _: None, started=True)
    finally:
        workspace.close()


def _open_in_order(path: Path, secrets: Path | None, process: str) -> StateWorkspace | None:
    """Open a state in good order, and keep it locked; None if there is anything to see to first."""
    key = LedgerKey.load(secrets)
    linked = any(folder.is_symlink() for folder in path.parents[:3])
    if key is None or linked or not path.is_file() or not is_known_state(secrets, path.parent):
        return None
    lock = DatabaseLock(path.with_suffix(".lock"))
    link: Database | None = None
    try:
        lock.acquire()
        link = Database(path)
        if find_network_share(path.parent) or link.find_damage() or read_schema_version(link) != CURRENT:
            anchor = None
        else:
            anchor = _read_matching_anchor(link, path.with_name(ANCHOR), key)
        if anchor is not None:
            link.make_durable()
            reserve = DiskReserve(path.with_suffix(".reserve"))
            workspace = StateWorkspace(link, lock, reserve, anchor, key, WallClock(), process, Condition())
            # The reserve is for what runs already, to record its end; a new change must not use it up.
            workspace.refuse_when_full()
            return workspace
    except BaseException:
        _close(link, lock)
        raise
    _close(link, lock)
    return None


def _read_matching_anchor(link: Database, path: Path, key: LedgerKey) -> AnchorFile | None:
    """The anchor's file, if it names the newest row and the newest checkpoint. Nobody writes while we hold the lock."""
    line, head = read_anchor_bytes(path), read_ledger_head(link)
    known = Anchor.parse_line(line[:SLOT], key) if line else None
    checkpoints = head.checkpoint.number if head.checkpoint else 0
    fits = known is not None and (known.seq, known.hash, known.checkpoints) == (head.seq, head.hash, checkpoints)
    return AnchorFile(path) if fits and head.seq else None


def _close(link: Database | None, lock: DatabaseLock) -> None:
    if link is not None:
        link.close()
    lock.close()


def _open_as_server(path: Path, secrets: Path | None, process: str) -> StateWorkspace:
    # Seldom needed, and it brings in everything that a state is mended with.
    from mcp_server.state.open import open_workspace

    workspace = open_workspace(path, secrets, WallClock(), process)
    try:
        workspace.refuse_when_full()
        _ = workspace.key.public_key  # imports what signs before the lock is taken
        workspace.lock.acquire()
        if not workspace.link.is_intact():
            raise make_busy_refusal()
    except BaseException:
        workspace.close()
        raise
    return workspace


def _commit(workspace: StateWorkspace, work: Callable[[Transaction], T], started: bool) -> T:
    """`started`: a start is on record, so the end has to be, too."""
    tx = workspace.begin()
    try:
        settle_dead_calls(tx)
        result = work(tx)
        if started:
            record_process_end(tx)
        if started or tx.seq - (tx.checkpoint.seq if tx.checkpoint else 0) >= CHECKPOINT_ROWS:
            sign_checkpoint(tx)
        workspace.commit(tx)
    except BaseException:
        with suppress(Exception):
            workspace.link.rollback()
        raise
    # The rows are there without it; the next start says so.
    with suppress(OSError):
        workspace.put_anchor(tx)
    return result


def find_unended_processes(view: View) -> set[tuple[object, object]]:
    """The processes on record that have not recorded their end: number, and when each began."""
    rows = view.fetch_all(
        "SELECT kind, body FROM ledger WHERE kind IN (:start, :stop) ORDER BY seq DESC LIMIT :most",
        start=RowKind.START,
        stop=RowKind.STOP,
        most=LIVES,
    )
    ended: set[object] = set()
    unended: set[tuple[object, object]] = set()
    for row in rows:
        body = read_body(row["body"])
        if row["kind"] == RowKind.STOP:
            ended.add(body.get("process"))
        elif body.get("process") not in ended:
            unended.add((body.get("pid"), body.get("born")))
    return unended
