"""What does a state file say, without waiting for the engine to load? Reads it with Python's own sqlite3."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from msgspec.structs import replace

from mcp_server.model.posture import PostureChoice
from mcp_server.model.sessions import Hold
from mcp_server.state import posture, runs
from mcp_server.state.engine.chain import ANCHOR, LedgerKey
from mcp_server.state.engine.transaction import View
from mcp_server.state.location import find_all_state_folders, find_foreign_state, is_own_file, is_sealed_by

if TYPE_CHECKING:
    import sqlite3

LOCK_SECONDS = 0.1
MAX_STEPS = 50_000_000
"""Virtual machine steps per statement."""
MAX_HOLDS = 1000
FOREIGN_REASON = "it was {} in a state that this account did not seal"
HoldsByPlace: TypeAlias = Mapping[tuple[str, str], Hold]


@contextmanager
def open_read_only(path: Path) -> "Generator[sqlite3.Connection]":
    """Open a state file that we do not trust: statements get little time, and views and triggers are refused."""
    import sqlite3

    uri = f"file:{quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as connection:
        connection.row_factory = sqlite3.Row
        connection.set_progress_handler(lambda: 1, MAX_STEPS)
        if connection.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
            raise sqlite3.DatabaseError("it contains statements that menugate did not put there")
        yield connection


class StatePeek(View):
    """A view over Python's own sqlite3, for what cannot wait for the engine."""

    def __init__(self, connection: "sqlite3.Connection", key: LedgerKey | None) -> None:
        self._connection = connection
        self.key = key

    def fetch_all(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._connection.execute(sql, values)]


def peek_posture_choice(path: Path, secrets: Path | None, principal: str) -> PostureChoice | None:
    """Return the user's choice; None if there never was one.

    A stdio server builds its first list from this, because loading the engine takes a fifth of the time a host waits.
    Anything doubtful counts as the most restricted choice, until the state is open and says more.
    """
    import sqlite3

    key = LedgerKey.load(secrets)
    key = key if key and is_sealed_by(key, path.parent) else None
    if not path.exists():
        if path.with_name(ANCHOR).exists():
            return PostureChoice.build_most_restricted(0)
        # What another account chose here restricts this one, until this one makes a choice.
        foreign = find_foreign_state(path.parent)
        if foreign is None or not foreign.exists():
            return None
        path = foreign
    try:
        with open_read_only(path) as connection:
            return posture.load_choice(StatePeek(connection, key), principal)
    except sqlite3.Error:
        return PostureChoice.build_most_restricted(0)


def find_holds_beside(path: Path) -> HoldsByPlace:
    """Find the holds in states beside a new one, including this account's own under other keys. A hold only restricts,
    so it counts until the user resumes at a terminal."""
    base = find_foreign_state(path.parent) or path
    files = (folder / path.name for folder in find_all_state_folders(base.parent, ()))
    sources = (base, *(file for file in files if is_own_file(file)))
    return {key: hold for file in sources if file != path for key, hold in load_foreign_holds(file).items()}


def load_foreign_holds(path: Path) -> HoldsByPlace:
    """Load the holds of a state that this account did not seal, with reasons of our own: that state's text must not
    reach a model."""
    import sqlite3

    try:
        with open_read_only(path) as connection:
            return dict(_read_claimed_holds(StatePeek(connection, None)))
    except (sqlite3.Error, ValueError, RecursionError):
        return {}


def _read_claimed_holds(view: View) -> Iterator[tuple[tuple[str, str], Hold]]:
    if not view.fetch_one("SELECT 1 FROM sqlite_master WHERE name = 'holds'"):
        return
    for row in view.fetch_all("SELECT * FROM holds LIMIT :most", most=MAX_HOLDS):
        hold, key = runs.hold_from_row(row), (row["principal"], row["session"])
        # A hold on a single run does not count: that run does not continue here.
        if hold is not None and not hold.run and all(isinstance(part, str) for part in key):
            yield key, replace(hold, reason=FOREIGN_REASON.format("stopped" if hold.stopped else "paused"))
