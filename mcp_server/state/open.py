"""In what condition is the state, and how is it opened?

The file's schema is a numbered list of steps; never edit a step. The ledger stores each row as the text that was
hashed. Its search columns are computed from that text, so that no copy can contradict what the chain covers;
`{session}` and the like stand for the dialect's expression.
"""

from dataclasses import replace
from pathlib import Path

from mcp_server import __version__
from mcp_server.model.results import Code, Refusal
from mcp_server.state.documents import forget_records
from mcp_server.state.engine.chain import ANCHOR, GENESIS, SLOT, Anchor, AnchorFile, LedgerKey
from mcp_server.state.engine.disk import DiskReserve
from mcp_server.state.engine.rows import Clock, Condition, RowKind
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
    replace_state_file,
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
from mcp_server.state.segments import record_segment, take_over_holds
from mcp_server.state.sessions import forget_old_sessions
from mcp_server.state.verify import count_unanchored_rows, describe_anchor_misfit, find_unfinished_calls

OPENING_ROWS = 500
FORGOTTEN_NS = 30 * 24 * 3600 * 10**9
SEARCHED = ("kind", "session", "tool", "code", "at", "run")

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE workspace (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            schema_version INTEGER NOT NULL,
            changes INTEGER NOT NULL,
            lost TEXT NOT NULL)""",
        "INSERT INTO workspace VALUES (1, 0, 0, '')",
        """CREATE TABLE ledger (
            seq INTEGER PRIMARY KEY,
            body TEXT NOT NULL,
            hash TEXT NOT NULL,
            kind TEXT GENERATED ALWAYS AS ({kind}),
            session TEXT GENERATED ALWAYS AS ({session}),
            tool TEXT GENERATED ALWAYS AS ({tool}),
            code TEXT GENERATED ALWAYS AS ({code}),
            at BIGINT GENERATED ALWAYS AS ({at}))""",
        """CREATE TABLE checkpoints (
            number INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL, at BIGINT NOT NULL,
            key TEXT NOT NULL, signature TEXT NOT NULL)""",
        """CREATE TABLE posture (
            principal TEXT PRIMARY KEY, axes TEXT NOT NULL, epoch INTEGER NOT NULL, mac TEXT NOT NULL)""",
        """CREATE TABLE sessions (
            id TEXT PRIMARY KEY,
            principal TEXT NOT NULL,
            mode TEXT,
            stage TEXT,
            run TEXT NOT NULL,
            steps INTEGER NOT NULL,
            version INTEGER NOT NULL,
            pinned INTEGER NOT NULL,
            handle_digest TEXT,
            created BIGINT NOT NULL,
            used BIGINT NOT NULL)""",
        "CREATE UNIQUE INDEX sessions_by_handle ON sessions (handle_digest)",
        """CREATE TABLE messages (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, read INTEGER NOT NULL DEFAULT 0,
            body TEXT NOT NULL)""",
        """CREATE TABLE seen (
            session TEXT NOT NULL, path TEXT NOT NULL, size BIGINT NOT NULL, mtime_ns BIGINT NOT NULL,
            digest TEXT NOT NULL, PRIMARY KEY (session, path))""",
    ),
    (
        """CREATE TABLE records (
            number INTEGER PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, mark TEXT NOT NULL,
            version INTEGER NOT NULL, body TEXT NOT NULL, made BIGINT NOT NULL, changed BIGINT NOT NULL,
            UNIQUE (owner, kind, id))""",
        "CREATE INDEX records_by_mark ON records (owner, kind, mark)",
    ),
    ("ALTER TABLE sessions ADD COLUMN phase TEXT",),
    (
        "ALTER TABLE sessions ADD COLUMN reasoned INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE approvals (
            id TEXT PRIMARY KEY, principal TEXT NOT NULL, asked BIGINT NOT NULL, expires BIGINT NOT NULL,
            body TEXT NOT NULL, mac TEXT NOT NULL)""",
        """CREATE TABLE holds (
            principal TEXT NOT NULL, session TEXT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY (principal, session))""",
        """CREATE TABLE thoughts (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, run TEXT NOT NULL, at BIGINT NOT NULL,
            body TEXT NOT NULL)""",
        """CREATE TABLE reports (
            number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, principal TEXT NOT NULL, session TEXT NOT NULL,
            at BIGINT NOT NULL, body TEXT NOT NULL)""",
    ),
    (
        # A transition from one run to the next belongs to the run that it ends.
        "ALTER TABLE ledger ADD COLUMN run TEXT GENERATED ALWAYS AS (coalesce({run}, {from_run}))",
        "CREATE INDEX ledger_by_run ON ledger (run) WHERE run IS NOT NULL",
        """CREATE TABLE notes (
            number INTEGER PRIMARY KEY, run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL,
            kind TEXT NOT NULL, text TEXT NOT NULL)""",
        "CREATE INDEX notes_by_run ON notes (run)",
    ),
)
CURRENT = len(STEPS)


def read_schema_version(link: Database) -> int | None:
    """Return the schema step of the file; 0 if it is empty, None if it is not ours."""
    tables = link.tables()
    if not tables:
        return 0
    if "workspace" not in tables:
        return None
    row = link.cursor.execute("SELECT schema_version FROM workspace").fetchone()
    return row[0] if row else None


def migrate(link: Database, found: int) -> None:
    """Bring the file up to date, inside the caller's transaction."""
    columns = {name: link.format_field_expression(name) for name in SEARCHED} | {
        "from_run": link.format_field_expression("from.run")
    }
    for step in STEPS[found:]:
        for statement in step:
            link.cursor.execute(statement.format(**columns) if "{" in statement else statement)
    if found < CURRENT:
        link.cursor.execute(f"UPDATE workspace SET schema_version = {CURRENT}")  # noqa: S608  # our own number


def open_workspace(path: Path, secrets: Path | None, clock: Clock, process: str, suspicion: str = "") -> StateWorkspace:
    """`suspicion`: what this process found, which just had the file open: it is `gone`, or `damaged`."""
    try:
        return _open(path, secrets, (clock, process), suspicion)
    except Exception as error:
        told = refusal_from_error(error, path)
        # Opening needs a little room, which a full disk only has once the reserve is given up.
        if told and told.problem.code is Code.STORE_FULL and DiskReserve(path.with_suffix(".reserve")).spend():
            return open_workspace(path, secrets, clock, process, suspicion)
        raise told or error from None


def _open(path: Path, secrets: Path | None, who: tuple[Clock, str], suspicion: str) -> StateWorkspace:
    for folder in reversed(path.parents[: 3 if find_foreign_state(path.parent) else 1]):
        make_state_folder(folder)
    if share := find_network_share(path.parent):
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            f"`{path.parent}` lies on a network file system ({share}), where machines damage each other's state.",
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
            f"`{folder}` is a link, and menugate keeps its state in a folder that is really there; nothing ran.",
            "Take the link away.",
        )
    if folder.is_dir():
        return
    if folder.name == SHARED[0] and not folder.parent.is_dir():
        # Recreate only what belongs to the state, never the folder that the person works in.
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            f"the workspace folder `{folder.parent}` is gone: it was moved, renamed or deleted; nothing ran.",
            "Put it back, and menugate goes on by itself; or start menugate again where it is now.",
        )
    make_private_folder(folder)
    # Keep the state out of the person's repository.
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
    return Database(path), StateFile(0, f"the state file was damaged ({damage}); it was put aside as `{name}`")


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
            f"`{path}` comes from an older menugate (layout {found}; known here: {CURRENT}) and was only looked at.",
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
            record_segment(tx, segment.fields, segment.claims)
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
