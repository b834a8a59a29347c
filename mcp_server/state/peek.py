"""What does a state file say, read with Python's own sqlite3? Loading the real engine takes longer."""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from mcp_server.model.posture import PostureChoice
from mcp_server.model.sessions import Hold
from mcp_server.state import posture, runs
from mcp_server.state.engine.chain import ANCHOR, LedgerKey
from mcp_server.state.engine.transaction import View
from mcp_server.state.location import find_all_state_folders, find_foreign_state, is_sealed_by

if TYPE_CHECKING:
    import sqlite3

GLIMPSE_SECONDS = 0.1
MOST_STEPS = 50_000_000
"""Virtual machine steps per statement."""
MOST_HELD = 1000
SAID_ELSEWHERE = "it was {} in a state that this account did not seal"
Held: TypeAlias = Mapping[tuple[str, str], Hold]


@contextmanager
def open_read_only(path: Path) -> "Generator[sqlite3.Connection]":
    """Open a state file with Python's own sqlite3. Its origin is not trusted, so statements get little
    time, and a file with views or triggers is refused."""
    import sqlite3

    address = f"file:{quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=GLIMPSE_SECONDS)) as plain:
        plain.row_factory = sqlite3.Row
        plain.set_progress_handler(lambda: 1, MOST_STEPS)
        if plain.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
            raise sqlite3.DatabaseError("it contains statements that menugate did not put there")
        yield plain


class StatePeek(View):
    """The file read with Python's own sqlite3, for the one question that cannot wait for the engine."""

    def __init__(self, plain: "sqlite3.Connection", key: LedgerKey | None) -> None:
        self._plain = plain
        self.key = key

    def fetch_all(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._plain.execute(sql, values)]


def peek_posture_choice(path: Path, secrets: Path | None, principal: str) -> PostureChoice | None:
    """Return what the person chose; None if they never chose.

    A stdio server builds its first list from this, because loading the engine takes a fifth of the time a host waits.
    Until the state is open and says more, anything doubtful counts as the most restricted choice.
    """
    import sqlite3

    key = LedgerKey.load(secrets)
    key = key if key and is_sealed_by(key, path.parent) else None
    if not path.exists():
        if path.with_name(ANCHOR).exists():
            return PostureChoice.build_most_restricted(0)
        # What another account chose here restricts this one until this one chooses.
        foreign = find_foreign_state(path.parent)
        if foreign is None or not foreign.exists():
            return None
        path = foreign
    try:
        with open_read_only(path) as plain:
            return posture.load_choice(StatePeek(plain, key), principal)
    except sqlite3.Error:
        return PostureChoice.build_most_restricted(0)


def find_holds_beside(path: Path) -> Held:
    """Find what the states beside a new one pause, including this account's under other keys. A pause and a stop only
    restrict, so they count until the person resumes at a terminal."""
    base = find_foreign_state(path.parent) or path
    mine = [one / path.name for one in find_all_state_folders(base.parent, ()) if _is_own_file(one / path.name)]
    return {key: hold for one in (base, *mine) if one != path for key, hold in load_foreign_holds(one).items()}


def load_foreign_holds(path: Path) -> Held:
    """Load the holds of a state that this account did not seal, reworded by us: its own text must not reach a model."""
    import sqlite3

    try:
        with open_read_only(path) as plain:
            return dict(_read_claimed_holds(StatePeek(plain, None)))
    except (sqlite3.Error, ValueError, RecursionError):
        return {}


def _read_claimed_holds(view: View) -> Iterator[tuple[tuple[str, str], Hold]]:
    if not view.fetch_one("SELECT 1 FROM sqlite_master WHERE name = 'holds'"):
        return
    for row in view.fetch_all("SELECT * FROM holds LIMIT :most", most=MOST_HELD):
        held, key = runs.hold_from_row(row), (row["principal"], row["session"])
        # A hold on a single run ends with that run, which does not continue here.
        if held is not None and not held.run and all(isinstance(one, str) for one in key):
            yield key, replace(held, reason=SAID_ELSEWHERE.format("stopped" if held.stopped else "paused"))


def _is_own_file(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False
