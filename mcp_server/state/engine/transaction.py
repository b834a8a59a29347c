"""What is one batch? The writer's queued requests, and the single transaction that carries them out.

Each action on the state is one function over one open transaction, in the file of its subject, and runs in the writer's
thread. It returns what the caller gets, and writes nothing if the answer is `PostureMoved` or `VersionMoved`. The SQL
is plain enough for every engine.
"""

import asyncio
import contextlib
import dataclasses
import queue
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mcp_server.model.results import Refusal
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.chain import (
    GENESIS,
    Anchor,
    AnchorFile,
    Checkpoint,
    LedgerKey,
    compute_row_hash,
    format_canonical_json,
)
from mcp_server.state.engine.disk import DiskReserve
from mcp_server.state.engine.rows import Clock, Condition, RowKind

if TYPE_CHECKING:
    from mcp_server.state.engine.sqlite import Database, DatabaseLock

LARGEST_BATCH = 256
TICK_SECONDS = 0.1
CLOSING_SECONDS = 2.0
LOCK_SECONDS = 5.0
MOST_PENDING = 20_000
MOST_COUNTED = 1 << 62
LOST_EPOCH = 1 << 40
"""The epoch after a posture was lost, until one is chosen. No file reaches it by counting, so a process that still
holds the earlier choice must decide again."""
INSERT_ROW = "INSERT INTO ledger (seq, body, hash) VALUES (?, ?, ?)"
"""One text, so that SQLite prepares the statement that every call waits for once per connection."""
EPOCH = f"""SELECT coalesce(
    (SELECT epoch FROM posture WHERE principal = ?),
    (SELECT CASE WHEN lost = '' THEN 0 ELSE {LOST_EPOCH} END FROM workspace))"""  # noqa: S608  # our own number


@dataclass(eq=False)
class View:
    """The state as it can be read now. `key` is None if nothing sealed can be checked."""

    link: "Database"
    key: LedgerKey | None

    def fetch_all(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        found = self.link.connection.execute(sql, values)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]

    def fetch_each(self, sql: str, **values: Any) -> Iterator[Any]:
        """Yield row by row, for callers that read many and keep none."""
        return self.link.connection.execute(sql, values)

    def fetch_one(self, sql: str, **values: Any) -> dict[str, Any] | None:
        return next(iter(self.fetch_all(sql, **values)), None)

    def get_epoch(self, principal: str) -> int:
        """How often this principal's posture has changed."""
        row = self.link.cursor.execute(EPOCH, (escape_for_model(principal),)).fetchone()
        return to_whole_number(row[0])


class LedgerHead(Struct, frozen=True):
    """Where the ledger ends, and what the last transaction knew of the postures."""

    seq: int
    hash: str
    checkpoint: Checkpoint | None
    version: int = -1
    """The file's version at that time; a different one means that another process has written since."""
    epochs: dict[str, int] = field(default_factory=dict[str, int])
    unsettled: frozenset[str] | None = None


def read_ledger_head(link: "Database") -> LedgerHead:
    head = link.cursor.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
    last = link.cursor.execute(
        "SELECT number, seq, hash, at, key, signature FROM checkpoints ORDER BY number DESC LIMIT 1"
    ).fetchone()
    seq, digest = head or (0, GENESIS)
    return LedgerHead(seq, digest, Checkpoint(*last) if last else None)


class Transaction(View):
    """One batch on its way into the file. Every row is in the file at once, so a later request in the same batch sees
    the rows of an earlier one."""

    def __init__(
        self, link: "Database", key: LedgerKey, clock: Clock, process: str, tip: "LedgerHead | None" = None
    ) -> None:
        super().__init__(link, key)
        self.seal = key
        self.clock = clock
        self.process = process
        self.changed = False
        self.changes: int = 0
        tip = tip or read_ledger_head(link)
        self.seq, self.hash, self.checkpoint = tip.seq, tip.hash, tip.checkpoint
        self.epochs = tip.epochs
        self.unsettled = tip.unsettled
        """Principals with pending posture changes; None until first asked."""

    def append(self, kind: RowKind, fields: Mapping[str, Any]) -> int:
        seq = self.seq + 1
        body = format_canonical_json({"kind": kind, "at": self.clock.now_ns(), "process": self.process, **fields})
        self.seq, self.hash = seq, compute_row_hash(self.hash, seq, body)
        self.link.cursor.execute(INSERT_ROW, (seq, body, self.hash))
        return seq

    def get_epoch(self, principal: str) -> int:
        if principal not in self.epochs:
            self.epochs[principal] = super().get_epoch(principal)
        return self.epochs[principal]

    def count_change(self) -> None:
        """Count a change of posture or sessions, which other processes notice by that number."""
        self.link.cursor.execute("UPDATE workspace SET changes = changes + 1")
        self.changes += self.link.cursor.execute("SELECT changes FROM workspace").fetchone()[0]

    def run(self, sql: str, **values: Any) -> None:
        self.link.connection.execute(sql, values)


def to_whole_number(value: object) -> int:
    """Return a number from the file, or 0 if counting could not continue from it."""
    return value if isinstance(value, int) and 0 <= value < MOST_COUNTED else 0


@dataclass(slots=True)
class StateWorkspace:
    """The open state of one workspace, as one process holds it."""

    link: "Database"
    lock: "DatabaseLock"
    reserve: DiskReserve
    anchor: AnchorFile
    key: LedgerKey
    clock: Clock
    process: str
    condition: Condition
    full: bool = False
    """True if the disk is full: no new calls until the reserve could be restored."""
    tip: LedgerHead | None = None
    """As this process left it; saves reading it again while no other process writes."""

    @contextlib.contextmanager
    def open_transaction(self) -> Generator[Transaction]:
        """Commit and anchor what is done in it; on an error, write nothing. The caller holds the lock."""
        try:
            self.link.begin()
            tip, self.tip = self.tip, None
            known = tip if tip is not None and tip.version == self.link.version else None
            tx = Transaction(self.link, self.key, self.clock, self.process, known)
            yield tx
            self.commit(tx)
        except BaseException:
            with contextlib.suppress(Exception):
                self.link.rollback()
            raise
        # Before anyone is answered: it costs fifteen microseconds, and acknowledged rows can then not be cut off.
        # Without it the rows are there all the same, and the next start says so.
        with contextlib.suppress(OSError):
            self.put_anchor(tx)

    def commit(self, tx: Transaction) -> None:
        if tx.changed:
            tx.count_change()
        self.link.cursor.execute("COMMIT")
        # Our own commit leaves the file's version as it was.
        self.tip = LedgerHead(tx.seq, tx.hash, tx.checkpoint, self.link.version, tx.epochs, tx.unsettled)

    def put_anchor(self, tx: Transaction) -> None:
        """Write the newest row's anchor beside the file, after the commit and under the same lock."""
        checkpoints = tx.checkpoint.number if tx.checkpoint else 0
        self.anchor.write(Anchor(tx.seq, tx.hash, self.clock.now_ns(), checkpoints), self.key)

    def refuse_when_full(self) -> None:
        """Room to restore the reserve is the sign that there is space again."""
        self.full = not self.reserve.keep()
        if self.full:
            raise self.link.make_full_refusal()

    def close(self) -> None:
        """The last connection to close writes the log back into the file, which is a write like any other."""
        # If another process holds the lock it has the file open too: this close is not the last, and writes nothing.
        with contextlib.suppress(Refusal):
            self.lock.acquire(CLOSING_SECONDS)
        self.link.close()
        self.anchor.close()
        self.lock.close()


@dataclass(slots=True, eq=False)
class StoreJob:
    """One request to the writer."""

    work: Callable[[Any], Any]
    writes: bool = True
    future: "asyncio.Future[Any] | None" = None
    answered: Callable[[], None] | None = None
    """Called in the writer's thread, for callers that do not wait in the loop."""
    value: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class StoreReply:
    """What goes back to the loop, in one hop."""

    wishes: list[StoreJob] = dataclasses.field(default_factory=list[StoreJob])
    changed: bool = False
    """True if posture or sessions changed, here or elsewhere."""
    foreign: bool = False
    """True if another process changed them: what is cached in memory may be stale."""
    ended: bool = False


class Inbox:
    """Requests not yet taken up, from the loop and from any thread."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[StoreJob | None] = queue.SimpleQueue()
        self._pending: deque[StoreJob] = deque(maxlen=MOST_PENDING)
        self.put: Callable[[StoreJob], None] = self._queue.put
        self.defer: Callable[[StoreJob], None] = self._pending.append
        """Wakes nobody: the next batch or tick takes it along."""

    def end(self) -> None:
        """No request follows this one."""
        self._queue.put(None)

    def put_back(self, wishes: list[StoreJob]) -> None:
        self._pending.extendleft(reversed(wishes))

    def gather(self) -> tuple[list[StoreJob], bool]:
        """Wait up to a tick, then take what is queued, up to one batch; also return whether it was the last."""
        batch: list[StoreJob] = []
        try:
            wish = self._queue.get(timeout=TICK_SECONDS)
            while wish is not None:
                batch.append(wish)
                if len(batch) >= LARGEST_BATCH:
                    return batch, False
                wish = self._queue.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, True

    def drain(self, writes_only: bool = False) -> list[StoreJob]:
        """Take everything queued, without waiting. What is not wanted stays, in order, including the end mark."""
        taken: list[StoreJob] = []
        left: list[StoreJob | None] = []
        with contextlib.suppress(queue.Empty):
            while True:
                wish = self._queue.get_nowait()
                if wish is None or (writes_only and not wish.writes):
                    left.append(wish)
                else:
                    taken.append(wish)
        for wish in left:
            self._queue.put(wish)
        return taken

    def take_deferred(self) -> list[StoreJob]:
        count = min(len(self._pending), LARGEST_BATCH)
        return [self._pending.popleft() for _ in range(count)]
