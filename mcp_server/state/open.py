"""How is a state opened, and what does a start check, repair and record?"""

from pathlib import Path

from msgspec.structs import replace

from mcp_server import __version__
from mcp_server.model.results import Code, Refusal
from mcp_server.state.documents import forget_records
from mcp_server.state.engine.chain import ANCHOR, GENESIS, SLOT, Anchor, AnchorFile, LedgerKey
from mcp_server.state.engine.disk import DiskReserve
from mcp_server.state.engine.rows import Clock, Condition, RowKind
from mcp_server.state.engine.schema import CURRENT, migrate, read_schema_version
from mcp_server.state.engine.sqlite import (
    Database,
    DatabaseLock,
    find_network_share,
    make_refusal,
    refusal_from_error,
    set_aside,
)
from mcp_server.state.engine.transaction import StateWorkspace, Transaction
from mcp_server.state.foreign import (
    StateFile,
    describe_lost_state,
    find_segment_beside,
    is_state_sealed,
    leave_notices,
    record_segment,
    replace_state_file,
    take_over_holds,
)
from mcp_server.state.location import (
    SHARED,
    find_foreign_state,
    is_known_state,
    make_private_folder,
    read_anchor_bytes,
    remember_state,
)
from mcp_server.state.peek import find_holds_beside
from mcp_server.state.posture_changes import settle_dead_calls
from mcp_server.state.processes import get_own_pid, read_start_time
from mcp_server.state.sessions import forget_old_sessions
from mcp_server.state.verify import count_unanchored_rows, describe_anchor_misfit, find_unfinished_calls

OPENING_ROWS = 500
FORGOTTEN_NS = 30 * 24 * 3600 * 10**9


def open_workspace(path: Path, secrets: Path | None, clock: Clock, process: str, suspicion: str = "") -> StateWorkspace:
    """`suspicion`: what this process noticed while it had the file open: `gone` or `damaged`."""
    try:
        return _open(path, secrets, (clock, process), suspicion)
    except Exception as error:
        refusal = refusal_from_error(error, path)
        # Opening needs a little room, which a full disk only has once the reserve is given up.
        if refusal and refusal.problem.code is Code.STORE_FULL and DiskReserve(path.with_suffix(".reserve")).spend():
            return open_workspace(path, secrets, clock, process, suspicion)
        raise refusal or error from None


def _open(path: Path, secrets: Path | None, who: tuple[Clock, str], suspicion: str) -> StateWorkspace:
    for folder in reversed(path.parents[: 3 if find_foreign_state(path.parent) else 1]):
        make_state_folder(folder)
    if share := find_network_share(path.parent):
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            f"`{path.parent}` is on a network file system ({share}), where machines can corrupt each other's state.",
            "Put the state on a local disk.",
        )
    key = LedgerKey.load_or_create(secrets)
    lock = DatabaseLock(path.with_suffix(".lock"))
    try:
        lock.acquire()
        mine = is_known_state(secrets, path.parent)
        workspace = _open_locked(path, lock, (key, *who), suspicion, mine)
        remember_state(secrets, path.parent)
        return workspace
    except BaseException:
        lock.close()
        raise


def make_state_folder(folder: Path) -> None:
    if folder.is_symlink():
        # The link may have come with the workspace and lead to where a tool reads and writes.
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            f"`{folder}` is a link, and menugate keeps its state in a real folder; nothing ran.",
            "Remove the link.",
        )
    if folder.is_dir():
        return
    if folder.name == SHARED[0] and not folder.parent.is_dir():
        # Recreate only what belongs to the state, never the workspace.
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            f"the workspace folder `{folder.parent}` is gone: it was moved, renamed or deleted; nothing ran.",
            "Put it back, and menugate continues by itself; or start menugate again where the folder is now.",
        )
    make_private_folder(folder)
    # Keep the state out of the workspace's repository.
    (folder / ".gitignore").write_text("*\n")


def _open_locked(
    path: Path, lock: DatabaseLock, who: tuple[LedgerKey, Clock, str], suspicion: str, mine: bool
) -> StateWorkspace:
    key, clock, process = who
    anchor_path = path.with_name(ANCHOR)
    link, found = _open_or_set_aside(path, clock, suspicion == "damaged")
    try:
        old = read_anchor_bytes(anchor_path)
        if found.version and not is_state_sealed(link, old, key):
            link, found = replace_state_file(path, link, clock, mine)
        elif found.version == 0 and not mine:
            found = replace(found, segment=find_segment_beside(path), holds=find_holds_beside(path))
        lost = found.lost or describe_lost_state(found, old, key, suspicion)
        if lost or (found.segment and found.segment.tampered):
            set_aside(anchor_path, str(clock.now_ns()))
            old = None
        link.make_durable()
        anchor = AnchorFile(anchor_path)
        if found.version == 0:
            anchor.write(Anchor(0, GENESIS, clock.now_ns(), 0), key)
            old = anchor.read()
        reserve = DiskReserve(path.with_suffix(".reserve"))
        workspace = StateWorkspace(link, lock, reserve, anchor, key, clock, process, Condition())
        workspace.condition = _record_start(workspace, replace(found, lost=lost), old)
    except BaseException:
        link.close()
        raise
    workspace.full = not reserve.keep()
    lock.release()
    return workspace


def _open_or_set_aside(path: Path, clock: Clock, thorough: bool) -> tuple[Database, StateFile]:
    """Open the file. Move a damaged one aside; leave one from a newer version untouched."""
    link = Database(path)
    try:
        damage = link.find_damage(thorough)
        found = None if damage else read_schema_version(link)
    except BaseException:
        link.close()
        raise
    if not damage and found is not None and found <= CURRENT:
        return link, StateFile(found)
    link.close()
    if not damage:
        raise make_unfit_refusal(path, found)
    name = set_aside(path, str(clock.now_ns()))
    return Database(path), StateFile(0, f"the state file was damaged ({damage}); it was set aside as `{name}`")


def make_unfit_refusal(path: Path, found: int | None) -> Refusal:
    if found is None:
        return make_refusal(
            Code.STORE_UNAVAILABLE,
            f"`{path}` is a database, but not menugate's; nothing was written to it.",
            "Move it away, or keep the state elsewhere.",
        )
    if found < CURRENT:
        return make_refusal(
            Code.STORE_UNAVAILABLE,
            f"`{path}` comes from an older menugate (layout {found}; known here: {CURRENT}) and was only read.",
            "Start menugate here once; it brings the state up to date.",
        )
    return make_refusal(
        Code.STORE_UNAVAILABLE,
        f"`{path}` comes from a newer menugate (layout {found}; known here: {CURRENT}); nothing was written to it.",
        "Update menugate to the version that made it.",
    )


def _record_start(workspace: StateWorkspace, found: StateFile, anchor: bytes | None) -> Condition:
    """Migrate, record the start and report what is wrong, in one transaction."""
    workspace.link.begin()
    try:
        migrate(workspace.link, found.version)
        tx = Transaction(workspace.link, workspace.key, workspace.clock, workspace.process)
        alarm, segment = describe_anchor_misfit(tx, anchor, workspace.key), found.segment
        if segment:
            record_segment(tx, segment)
        take_over_holds(tx, found.holds)
        lost = found.lost or (segment.reason if segment and segment.unread else "")
        exchanged = segment.reason if segment and segment.tampered and not lost else ""
        condition = Condition(
            fresh=found.version == 0,
            lost=lost,
            alarms=tuple(one for one in (alarm, exchanged) if one),
            unfinished=len(find_unfinished_calls(tx, OPENING_ROWS)),
        )
        if alarm:
            # Keep what the anchor said as evidence: it is about to be overwritten.
            tx.append(
                RowKind.ALARM, {"reason": alarm, "evidence": (anchor or b"")[:SLOT].decode("ascii", "replace").strip()}
            )
        if lost:
            tx.run("UPDATE workspace SET lost = :lost", lost=lost)
            tx.epochs.clear()
        leave_notices(tx, condition, segment)
        # Rows that no anchor names: a killed process leaves some, and so does tampering.
        about = {
            "unfinished": condition.unfinished,
            "unanchored": count_unanchored_rows(tx, anchor, workspace.key) or None,
        }
        self = {"pid": get_own_pid(), "born": read_start_time(get_own_pid())}
        tx.append(RowKind.START, {**self, "version": __version__, "reason": lost or None, **about})
        settle_dead_calls(tx)
        forget_old_sessions(tx, workspace.clock.now_ns() - FORGOTTEN_NS)
        forget_records(tx, workspace.clock.now_ns() - FORGOTTEN_NS)
        workspace.commit(tx)
        workspace.put_anchor(tx)
    except BaseException:
        workspace.link.rollback()
        raise
    return condition
