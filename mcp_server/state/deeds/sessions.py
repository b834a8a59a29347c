"""Where does each session stand, and how does it move without two moving it at once?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_server.model.posture import Stage
from mcp_server.model.session import Session
from mcp_server.state.batch import Transaction, View, plain
from mcp_server.state.deeds.ledger import transition
from mcp_server.state.deeds.notes import let_go
from mcp_server.state.record import Changed, Kept


def _place(session: Session) -> dict[str, Any]:
    return {name: getattr(session, name) for name in ("mode", "stage", "run", "pinned", "phase")}


def _kept(row: Mapping[str, Any]) -> Kept:
    stage = Stage(row["stage"]) if row["stage"] in list(Stage) else None
    session = Session(
        id=row["id"],
        principal=row["principal"],
        mode=row["mode"],
        stage=stage,
        run=row["run"],
        steps=row["steps"],
        version=row["version"],
        pinned=bool(row["pinned"]),
        reasoned=bool(row["reasoned"]),
        phase=row["phase"],
    )
    return Kept(session, row["handle_digest"], row["created"], row["used"])


def session(view: View, id: str) -> Kept | None:
    row = view.one("SELECT * FROM sessions WHERE id = :id", id=plain(id))
    return _kept(row) if row else None


def session_by_handle(view: View, digest: str) -> Kept | None:
    row = view.one("SELECT * FROM sessions WHERE handle_digest = :digest", digest=plain(digest))
    return _kept(row) if row else None


def sessions(view: View) -> Sequence[Kept]:
    return [_kept(row) for row in view.all("SELECT * FROM sessions ORDER BY used DESC")]


def put_session(tx: Transaction, put: Session, handle_digest: str | None) -> Kept:
    """Make a session known, or give a known one its handle. Where it stands is changed by `move` alone."""
    now = tx.clock.now_ns()
    tx.run(
        "INSERT INTO sessions"
        " (id, principal, mode, stage, run, steps, version, pinned, reasoned, phase, handle_digest, created, used)"
        " VALUES (:id, :principal, :mode, :stage, :run, :steps, :version, :pinned, :reasoned, :phase, :digest,"
        " :now, :now)"
        " ON CONFLICT (id) DO UPDATE SET used = excluded.used,"
        " handle_digest = coalesce(excluded.handle_digest, sessions.handle_digest)",
        **_columns(put),
        digest=handle_digest,
        now=now,
    )
    tx.changed = True
    found = session(tx, put.id)
    assert found is not None, "just written"
    return found


def _columns(one: Session) -> dict[str, Any]:
    return {
        "id": plain(one.id),
        "principal": plain(one.principal),
        "mode": one.mode,
        "stage": one.stage,
        "run": one.run,
        "steps": one.steps,
        "version": one.version,
        "pinned": int(one.pinned),
        "reasoned": int(one.reasoned),
        "phase": one.phase,
    }


def move(tx: Transaction, before: Session, after: Session, why: Mapping[str, str]) -> Kept | Changed:
    """Take a session from one place to the next, unless somebody moved it meanwhile."""
    current = session(tx, before.id)
    if current is None and before.version == 0:
        current = put_session(tx, before, None)
    if current is None or current.session.version != before.version or current.session.principal != before.principal:
        return Changed(current.session if current else None)
    settled = replace(after, id=before.id, principal=before.principal, version=before.version + 1)
    tx.run(
        "UPDATE sessions SET mode = :mode, stage = :stage, run = :run, steps = :steps, version = :version,"
        " pinned = :pinned, reasoned = :reasoned, phase = :phase, used = :now WHERE id = :id",
        **{name: value for name, value in _columns(settled).items() if name != "principal"},
        now=tx.clock.now_ns(),
    )
    # A step within the same place is bookkeeping, not a transition.
    if _place(settled) != _place(before):
        whose = {"principal": before.principal, "session": before.id}
        transition(tx, _place(before), _place(settled), {**whose, **why})
    tx.changed = True
    return replace(current, session=settled, used=tx.clock.now_ns())


def pass_by(tx: Transaction, before: Session, after: Session, why: Mapping[str, str]) -> None:
    """Put on record how a session moved that is not written down, because nobody could come back to it."""
    if _place(after) != _place(before):
        whose = {"principal": before.principal, "session": before.id}
        transition(tx, _place(before), _place(after), {**whose, **why})


def touch(tx: Transaction, id: str, used: int) -> None:
    tx.run("UPDATE sessions SET used = :used WHERE id = :id AND used < :used", id=plain(id), used=used)


def forget(tx: Transaction, before_ns: int) -> None:
    """Let go of sessions nobody used since then, and of what was noted of runs before."""
    let_go(tx, before_ns)
    tx.run("DELETE FROM seen WHERE session IN (SELECT id FROM sessions WHERE used < :then)", then=before_ns)
    tx.run("DELETE FROM sessions WHERE used < :then", then=before_ns)
    tx.run("DELETE FROM holds WHERE session <> '' AND at < :then", then=before_ns)
