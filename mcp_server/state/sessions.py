"""Where is each session, and how does it move without two callers moving it at once?"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcp_server.model.posture import Stage
from mcp_server.model.sessions import PLACE, Session
from mcp_server.model.text import escape_for_model
from mcp_server.state.approval_questions import settle_run_questions
from mcp_server.state.engine.rows import StoredSession, VersionMoved
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.ledger import record_transition
from mcp_server.state.notes import drop_old_notes

SHARED = ("stage", "run", "phase", "reasoned")
"""Belongs to the run, and so is the same in all places of a session."""


def _get_place(session: Session) -> dict[str, Any]:
    return {name: getattr(session, name) for name in ("mode", "stage", "run", "pinned", "phase")}


def get_run_progress(session: Session) -> tuple[object, ...]:
    """How far the session's run is."""
    return tuple(getattr(session, name) for name in SHARED)


def _session_from_row(row: dict[str, Any]) -> StoredSession:
    stage = Stage(row["stage"]) if row["stage"] in list(Stage) else None
    id, _, place = row["id"].partition(PLACE)
    session = Session(
        id=id,
        place=place,
        principal=row["principal"],
        mode=row["mode"],
        stage=stage,
        run=row["run"],
        steps=row["steps"],
        version=row["version"],
        pinned=bool(row["pinned"]),
        reasoned=bool(row["reasoned"]),
        phase=row["phase"],
        added=tuple(row.get("added", "").split()),
    )
    return StoredSession(session, row["handle_digest"], row["created"], row["used"])


def find_session(view: View, key: str) -> StoredSession | None:
    row = view.fetch_one("SELECT * FROM sessions WHERE id = :id", id=escape_for_model(key))
    return _session_from_row(row) if row else None


def load_places(view: View, id: str) -> list[StoredSession]:
    """Every place of one session."""
    rows = view.fetch_all(
        "SELECT * FROM sessions WHERE id = :id OR substr(id, 1, :length) = :stem ORDER BY created, id",
        id=escape_for_model(id),
        stem=(stem := f"{escape_for_model(id)}{PLACE}"),
        length=len(stem),
    )
    return [_session_from_row(row) for row in rows]


def find_session_by_handle(view: View, digest: str) -> StoredSession | None:
    row = view.fetch_one("SELECT * FROM sessions WHERE handle_digest = :digest", digest=escape_for_model(digest))
    return _session_from_row(row) if row else None


def load_sessions(view: View) -> Sequence[StoredSession]:
    return [_session_from_row(row) for row in view.fetch_all("SELECT * FROM sessions ORDER BY used DESC")]


def put_session(tx: Transaction, put: Session, handle_digest: str | None) -> StoredSession:
    """Store a session, or give a known one its handle. Only `move_session` changes where it is."""
    now = tx.clock.now_ns()
    tx.run(
        "INSERT INTO sessions"
        " (id, principal, mode, stage, run, steps, version, pinned, reasoned, phase, added, handle_digest, created,"
        " used) VALUES (:id, :principal, :mode, :stage, :run, :steps, :version, :pinned, :reasoned, :phase, :added,"
        " :digest, :now, :now)"
        " ON CONFLICT (id) DO UPDATE SET used = excluded.used,"
        " handle_digest = coalesce(excluded.handle_digest, sessions.handle_digest)",
        **_build_columns(put),
        digest=handle_digest,
        now=now,
    )
    tx.changed = True
    found = find_session(tx, put.key)
    assert found is not None, "just written"
    return found


def _build_columns(one: Session) -> dict[str, Any]:
    return {
        "id": escape_for_model(one.key),
        "principal": escape_for_model(one.principal),
        "mode": one.mode,
        "stage": one.stage,
        "run": one.run,
        "steps": one.steps,
        "version": one.version,
        "pinned": int(one.pinned),
        "reasoned": int(one.reasoned),
        "phase": one.phase,
        "added": " ".join(one.added),
    }


def move_session(
    tx: Transaction, before: Session, after: Session, why: Mapping[str, str]
) -> StoredSession | VersionMoved:
    """Move a session from one place to the next, unless someone else moved it meanwhile."""
    current = find_session(tx, before.key)
    if current is None and before.version == 0:
        current = put_session(tx, before, None)
    if current is None or current.session.version != before.version or current.session.principal != before.principal:
        return VersionMoved(current.session if current else None)
    settled = replace(after, id=before.id, place=before.place, principal=before.principal, version=before.version + 1)
    tx.run(
        "UPDATE sessions SET mode = :mode, stage = :stage, run = :run, steps = :steps, version = :version,"
        " pinned = :pinned, reasoned = :reasoned, phase = :phase, added = :added, used = :now WHERE id = :id",
        **{name: value for name, value in _build_columns(settled).items() if name != "principal"},
        now=tx.clock.now_ns(),
    )
    # A step within the same place is bookkeeping, not a transition.
    if _get_place(settled) != _get_place(before):
        whose = {"principal": before.principal, "session": before.id}
        record_transition(tx, _get_place(before), _get_place(settled), {**whose, **why})
    if get_run_progress(settled) != get_run_progress(before):
        _move_other_places(tx, before, settled)
    if settled.run != before.run:
        settle_run_questions(tx, before, settled.run)
    tx.changed = True
    return replace(current, session=settled, used=tx.clock.now_ns())


def _move_other_places(tx: Transaction, before: Session, after: Session) -> None:
    """Bring the session's other places to the same point in the run."""
    tx.run(
        "UPDATE sessions SET stage = :stage, run = :run, reasoned = :reasoned, phase = :phase, version = version + 1,"
        " steps = CASE WHEN :run = :was THEN steps ELSE 0 END, added = CASE WHEN :run = :was THEN added ELSE '' END"
        " WHERE (id = :session OR substr(id, 1, :length) = :stem) AND id <> :id AND run = :was",
        **{name: value for name, value in _build_columns(after).items() if name in ("id", *SHARED)},
        was=before.run,
        session=escape_for_model(before.id),
        stem=(stem := f"{escape_for_model(before.id)}{PLACE}"),
        length=len(stem),
    )


def record_passing_move(tx: Transaction, before: Session, after: Session, why: Mapping[str, str]) -> None:
    """Record the move of a session that is not stored, because nothing could ever find it again."""
    if after.run != before.run:
        settle_run_questions(tx, before, after.run)
    if _get_place(after) != _get_place(before):
        whose = {"principal": before.principal, "session": before.id}
        record_transition(tx, _get_place(before), _get_place(after), {**whose, **why})


def touch_session(tx: Transaction, id: str, used: int) -> None:
    tx.run("UPDATE sessions SET used = :used WHERE id = :id AND used < :used", id=escape_for_model(id), used=used)


def forget_old_sessions(tx: Transaction, before_ns: int) -> None:
    """Delete sessions unused since then, and what was noted of earlier runs."""
    drop_old_notes(tx, before_ns)
    tx.run("DELETE FROM seen WHERE session IN (SELECT id FROM sessions WHERE used < :then)", then=before_ns)
    tx.run("DELETE FROM sessions WHERE used < :then", then=before_ns)
    tx.run("DELETE FROM holds WHERE session <> '' AND at < :then", then=before_ns)
