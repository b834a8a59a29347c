"""What is the state of a run? Whether it is paused, what its thoughts concluded, and the report at its end."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcp_server.model.parts import asdict
from mcp_server.model.posture import Stage
from mcp_server.model.reports import RunReport, parse_report
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.model.text import escape_for_model
from mcp_server.policy.reasoning import ReasoningOutcome
from mcp_server.state import posture_changes
from mcp_server.state.approval_questions import void_approvals
from mcp_server.state.engine.rows import Row, RowKind, StoredSession
from mcp_server.state.engine.transaction import Transaction, View, to_whole_number
from mcp_server.state.ledger import record_transition
from mcp_server.state.sessions import load_places, load_sessions, move_session
from mcp_server.state.verify import row_from_record

UNIT_DONE = "a unit is done, and run control `assisted` waits until the user has looked at it"
MAX_SEARCHED_ROWS = 20_000
"""How many of the ledger's newest rows are searched for a run."""
MAX_THOUGHTS = 200


def load_holds(view: View) -> dict[tuple[str, str], Hold]:
    """Load all holds, by principal and session; an empty session stands for all of them."""
    rows = view.fetch_all("SELECT * FROM holds")
    return {(row["principal"], row["session"]): hold for row in rows if (hold := hold_from_row(row)) is not None}


def load_active_holds(view: View) -> dict[tuple[str, str], Hold]:
    """Load the holds that still apply; one on a single run ends with that run."""
    return {key: hold for key, hold in load_holds(view).items() if not (hold.run and is_delivered(view, hold.run))}


def is_delivered(view: View, run: str) -> bool:
    """Was the run completed?"""
    sql = "SELECT seq FROM ledger WHERE run = :run AND kind = :kind LIMIT 1"
    return view.fetch_one(sql, run=escape_for_model(run), kind=RowKind.DELIVERY) is not None


def pause_session(tx: Transaction, principal: str, session: str, hold: Hold) -> Hold:
    """Pause the session. If it is paused already, that hold stays, unless it was for another run or the user now gives
    a reason."""
    row = _find_hold_row(tx, principal, session)
    current = hold_from_row(row) if row is not None else None
    is_outranked = hold.by is Holder.PERSON and current is not None and current.by is not Holder.PERSON
    if current is not None and current.run in ("", hold.run) and not is_outranked:
        return current
    new_hold = replace(hold, at=tx.clock.now_ns())
    _write_hold(tx, principal, session, {name: value for name, value in asdict(new_hold).items() if name != "at"})
    _record_run_state(tx, principal, session, ("running", "paused"), new_hold.reason)
    return new_hold


def resume_session(tx: Transaction, principal: str, session: str | None, units: int = 1) -> list[Hold]:
    """Release one session or all. In `assisted`, `units` may run before the next pause."""
    holds = {
        key: hold
        for key, hold in load_holds(tx).items()
        if key[0] == escape_for_model(principal) and session in (None, key[1])
    }
    released = list(holds.values())
    _clear_holds(tx, principal, session)
    if units > 1:
        _write_hold(tx, principal, session or "", {"by": "", "units": units})
    _record_run_state(tx, principal, session or "", ("paused" if released else "running", "running"), f"next {units}")
    return released


def take_unit(tx: Transaction, session: Session, place: str) -> Hold | None:
    """Begin one unit of an assisted run, and pause the run for what follows the last one allowed. If it is paused
    already, return that hold."""
    rows = [row for key in dict.fromkeys((place, "")) if (row := _find_hold_row(tx, session.principal, key))]
    for row in rows:
        hold = hold_from_row(row)
        if hold is not None and hold.run in ("", session.run):
            return hold
    allowance = next((row for row in rows if hold_from_row(row) is None), None)
    units_left = (to_whole_number(json.loads(allowance["body"]).get("units")) if allowance else 1) - 1
    if allowance is not None and units_left > 0:
        _write_hold(tx, session.principal, allowance["session"], {"by": "", "units": units_left})
        return None
    if allowance is not None:
        _clear_holds(tx, session.principal, allowance["session"])
    pause_session(tx, session.principal, place, Hold(Holder.UNIT, UNIT_DONE))
    return None


def stop_runs(tx: Transaction, principal: str, session: str | None, run: str, reason: str) -> tuple[StoredSession, ...]:
    """Drop what the runs have collected, start a new run in each session (named `run` plus a number), and pause."""
    first_places: dict[str, Session] = {}
    for stored in load_sessions(tx):
        place = stored.session
        if place.principal == escape_for_model(principal) and session in (None, place.id):
            first_places.setdefault(place.id, place)
    void_approvals(tx, principal, session)
    posture_changes.close_requests(tx, principal, session, posture_changes.STOPPED)
    changed: list[StoredSession] = []
    for number, (id, place) in enumerate(first_places.items(), 1):
        after = replace(place, run=f"{run}-{number}", steps=0, stage=Stage.ACT, reasoned=False, added=())
        result = move_session(tx, place, after, {"reason": "stop", "scope": "now"})
        assert isinstance(result, StoredSession), "read in the same transaction"
        # This has moved the session's other places too.
        changed += load_places(tx, id)
        tx.run("DELETE FROM thoughts WHERE session = :session", session=id)
    _clear_holds(tx, principal, session)
    pause_session(tx, principal, session or "", Hold(Holder.PERSON, reason, stopped=True))
    return tuple(changed)


def keep_thought(tx: Transaction, session: Session, outcome: ReasoningOutcome) -> None:
    tx.run(
        "INSERT INTO thoughts (session, run, at, body) VALUES (:session, :run, :at, :body)",
        session=escape_for_model(session.id),
        run=escape_for_model(session.run),
        at=tx.clock.now_ns(),
        body=json.dumps(asdict(outcome)),
    )


def load_thoughts(view: View, session: str, run: str) -> Sequence[ReasoningOutcome]:
    """Load the conclusions of this run's thoughts in order; if there are many, only the newest."""
    rows = view.fetch_all(
        "SELECT body FROM thoughts WHERE session = :session AND run = :run ORDER BY number DESC LIMIT :most",
        session=escape_for_model(session),
        run=escape_for_model(run),
        most=MAX_THOUGHTS,
    )
    return [ReasoningOutcome(**json.loads(row["body"])) for row in reversed(rows)]


def record_delivery(tx: Transaction, session: Session, fields: Mapping[str, Any]) -> int:
    """Record that the run was delivered."""
    run_fields = {"principal": session.principal, "session": session.id, "run": session.run}
    return tx.append(RowKind.DELIVERY, run_fields | dict(fields) | {"reason": f"delivered as {fields.get('status')}"})


def load_run_rows(view: View, session: Session) -> Sequence[Row]:
    """Load a run's rows in order: calls, their outcomes, and refusals."""
    rows = view.fetch_all(
        "SELECT seq, body, hash FROM (SELECT * FROM ledger ORDER BY seq DESC LIMIT :most) AS newest"
        " WHERE session = :session ORDER BY seq",
        most=MAX_SEARCHED_ROWS,
        session=escape_for_model(session.id),
    )
    session_rows = [row_from_record(row) for row in rows]
    run_seqs = {row.seq for row in session_rows if row.fields.get("run") == session.run}
    return [row for row in session_rows if row.seq in run_seqs or row.fields.get("intent") in run_seqs]


def put_report(tx: Transaction, report: RunReport) -> None:
    """Store a run's only report; a second one does not replace it."""
    at = tx.clock.now_ns()
    tx.run(
        "INSERT INTO reports (run, principal, session, at, body) VALUES (:run, :principal, :session, :at, :body)"
        " ON CONFLICT (run) DO NOTHING",
        run=escape_for_model(report.run),
        principal=escape_for_model(report.principal),
        session=escape_for_model(report.session),
        at=at,
        body=json.dumps(asdict(replace(report, at=at))),
    )
    counts = {"issues": len(report.issues), "missing": len(report.missing_steps), "reason": report.summary}
    run_fields = {"principal": report.principal, "session": report.session, "run": report.run}
    opinion = report.opinion
    # Record what left this machine, and to whom, even if no answer came back.
    adviser_fields = {"asked": opinion.model, "place": opinion.place, "sent_bytes": opinion.sent} if opinion else {}
    tx.append(RowKind.REPORT, run_fields | counts | adviser_fields)


def find_report(view: View, run: str | None, principal: str | None = None) -> RunReport | None:
    """Find the newest report, or that of one run; any principal's, or only one's."""
    conditions = ["1 = 1"]
    values: dict[str, Any] = {}
    if run is not None:
        conditions.append("run = :run")
        values["run"] = escape_for_model(run)
    if principal is not None:
        conditions.append("principal = :principal")
        values["principal"] = escape_for_model(principal)
    where = " AND ".join(conditions)
    row = view.fetch_one(f"SELECT body FROM reports WHERE {where} ORDER BY number DESC LIMIT 1", **values)  # noqa: S608  # our own words
    return parse_report(json.loads(row["body"])) if row else None


def _find_hold_row(view: View, principal: str, session: str) -> dict[str, Any] | None:
    return view.fetch_one(
        "SELECT * FROM holds WHERE principal = :principal AND session = :session",
        principal=escape_for_model(principal),
        session=escape_for_model(session),
    )


def hold_from_row(row: Mapping[str, Any]) -> Hold | None:
    """Parse a hold; None if the row only allows further units. An unreadable row counts as a hold."""
    try:
        body = json.loads(row["body"])
        if body["by"] == "":
            return None
        stopped = body.get("stopped") is True
        return Hold(
            Holder(body["by"]), str(body["reason"]), str(body.get("run", "")), to_whole_number(row["at"]), stopped
        )
    except (ValueError, TypeError, KeyError):
        return Hold(Holder.PERSON, "the reason for the pause cannot be read", at=to_whole_number(row["at"]))


def _write_hold(tx: Transaction, principal: str, session: str, body: Mapping[str, Any]) -> None:
    tx.run(
        "INSERT INTO holds (principal, session, at, body) VALUES (:principal, :session, :at, :body)"
        " ON CONFLICT (principal, session) DO UPDATE SET at = excluded.at, body = excluded.body",
        principal=escape_for_model(principal),
        session=escape_for_model(session),
        at=tx.clock.now_ns(),
        body=json.dumps(dict(body)),
    )


def _clear_holds(tx: Transaction, principal: str, session: str | None) -> None:
    """Delete the hold on this session, or on every session of the principal."""
    if session is None:
        tx.run("DELETE FROM holds WHERE principal = :principal", principal=escape_for_model(principal))
        return
    where = {"principal": escape_for_model(principal), "session": escape_for_model(session)}
    tx.run("DELETE FROM holds WHERE principal = :principal AND session = :session", **where)


def _record_run_state(tx: Transaction, principal: str, session: str, states: tuple[str, str], reason: str) -> None:
    before, after = ({"run_state": state} for state in states)
    record_transition(tx, before, after, {"principal": principal, "session": session, "reason": reason, "scope": "now"})
