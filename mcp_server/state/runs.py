"""What state is a run in? Paused or not, what its thoughts concluded, and the findings at its end."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mcp_server.model.posture import Stage
from mcp_server.model.reports import RunReport, parse_report
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.model.text import escape_surrogates
from mcp_server.policy.reasoning import ReasoningOutcome
from mcp_server.state.approval_questions import void_approvals
from mcp_server.state.engine.rows import Row, RowKind, StoredSession
from mcp_server.state.engine.transaction import Transaction, View, to_whole_number
from mcp_server.state.ledger import record_transition
from mcp_server.state.sessions import load_places, load_sessions, move_session
from mcp_server.state.verify import read_body

UNIT_DONE = "a unit is done, and run control `assisted` waits for the person to look at it"
MOST_ROWS = 20_000
"""How many of the ledger's newest rows are searched for a run."""
MOST_THOUGHTS = 200


def load_holds(view: View) -> dict[tuple[str, str], Hold]:
    """Load who is paused, by principal and session; an empty session stands for all of them."""
    rows = view.fetch_all("SELECT * FROM holds")
    return {(row["principal"], row["session"]): held for row in rows if (held := hold_from_row(row)) is not None}


def load_active_holds(view: View) -> dict[tuple[str, str], Hold]:
    """Load the holds that still apply: a hold on a single run ends with that run."""
    return {key: held for key, held in load_holds(view).items() if not (held.run and _is_delivered(view, held.run))}


def _is_delivered(view: View, run: str) -> bool:
    sql = "SELECT seq FROM ledger WHERE run = :run AND kind = :kind LIMIT 1"
    return view.fetch_one(sql, run=escape_surrogates(run), kind=RowKind.DELIVERY) is not None


def pause_session(tx: Transaction, principal: str, session: str, hold: Hold) -> Hold:
    """Pause. If already paused, the first reason stays, unless that was about another run or the person now gives
    one."""
    known = _find_hold_row(tx, principal, session)
    held = hold_from_row(known) if known is not None else None
    if held is not None and held.run in ("", hold.run) and (held.by is Holder.PERSON or hold.by is not Holder.PERSON):
        return held
    settled = replace(hold, at=tx.clock.now_ns())
    _write_hold(tx, principal, session, {name: value for name, value in asdict(settled).items() if name != "at"})
    _record_run_state(tx, principal, session, ("running", "paused"), settled.reason)
    return settled


def resume_session(tx: Transaction, principal: str, session: str | None, units: int = 1) -> list[Hold]:
    """Lift the hold on one session or all; in `assisted`, `units` may run before the next pause."""
    found = {
        key: held
        for key, held in load_holds(tx).items()
        if key[0] == escape_surrogates(principal) and session in (None, key[1])
    }
    lifted = list(found.values())
    _clear_holds(tx, principal, session)
    if units > 1:
        _write_hold(tx, principal, session or "", {"by": "", "units": units})
    _record_run_state(tx, principal, session or "", ("paused" if lifted else "running", "running"), f"next {units}")
    return lifted


def take_unit(tx: Transaction, session: Session, place: str) -> Hold | None:
    """Begin one unit of an assisted run; the last one allowed pauses it. Return what already holds it, if anything."""
    rows = [row for key in dict.fromkeys((place, "")) if (row := _find_hold_row(tx, session.principal, key))]
    for row in rows:
        held = hold_from_row(row)
        if held is not None and held.run in ("", session.run):
            return held
    granted = next((row for row in rows if hold_from_row(row) is None), None)
    left = (to_whole_number(json.loads(granted["body"]).get("units")) if granted else 1) - 1
    if granted is not None and left > 0:
        _write_hold(tx, session.principal, granted["session"], {"by": "", "units": left})
        return None
    if granted is not None:
        _clear_holds(tx, session.principal, granted["session"])
    pause_session(tx, session.principal, place, Hold(Holder.UNIT, UNIT_DONE))
    return None


def stop_runs(tx: Transaction, principal: str, session: str | None, run: str, reason: str) -> tuple[StoredSession, ...]:
    """Clear what the runs have collected and pause: each session begins a new run, named `run` plus a number."""
    mine = [kept.session for kept in load_sessions(tx) if kept.session.principal == escape_surrogates(principal)]
    void_approvals(tx, principal, session)
    moved: list[StoredSession] = []
    for number, id in enumerate(dict.fromkeys(one.id for one in mine if session in (None, one.id)), 1):
        one = next(one for one in mine if one.id == id)
        after = replace(one, run=f"{run}-{number}", steps=0, stage=Stage.ACT, reasoned=False)
        settled = move_session(tx, one, after, {"reason": "stop", "scope": "now"})
        assert isinstance(settled, StoredSession), "read in the same transaction"
        # Its other places moved along.
        moved += load_places(tx, id)
        tx.run("DELETE FROM thoughts WHERE session = :session", session=id)
    _clear_holds(tx, principal, session)
    pause_session(tx, principal, session or "", Hold(Holder.PERSON, reason, stopped=True))
    return tuple(moved)


def keep_thought(tx: Transaction, session: Session, outcome: ReasoningOutcome) -> None:
    tx.run(
        "INSERT INTO thoughts (session, run, at, body) VALUES (:session, :run, :at, :body)",
        session=escape_surrogates(session.id),
        run=escape_surrogates(session.run),
        at=tx.clock.now_ns(),
        body=json.dumps(asdict(outcome)),
    )


def load_thoughts(view: View, session: str, run: str) -> Sequence[ReasoningOutcome]:
    """Load the conclusions of this run's thoughts in order; if there are many, only the newest."""
    rows = view.fetch_all(
        "SELECT body FROM thoughts WHERE session = :session AND run = :run ORDER BY number DESC LIMIT :most",
        session=escape_surrogates(session),
        run=escape_surrogates(run),
        most=MOST_THOUGHTS,
    )
    return [ReasoningOutcome(**json.loads(row["body"])) for row in reversed(rows)]


def record_delivery(tx: Transaction, session: Session, fields: Mapping[str, Any]) -> int:
    """Mark the run as delivered, whatever follows."""
    whose = {"principal": session.principal, "session": session.id, "run": session.run}
    return tx.append(RowKind.DELIVERY, whose | dict(fields) | {"reason": f"delivered as {fields.get('status')}"})


def load_run_rows(view: View, session: Session) -> Sequence[Row]:
    """Load a run's rows in order: what ran, its outcome, and what did not run."""
    rows = view.fetch_all(
        "SELECT seq, body, hash FROM (SELECT * FROM ledger ORDER BY seq DESC LIMIT :most) AS newest"
        " WHERE session = :session ORDER BY seq",
        most=MOST_ROWS,
        session=escape_surrogates(session.id),
    )
    found = [Row(row["seq"], row["hash"], row["body"], read_body(row["body"])) for row in rows]
    mine = {row.seq for row in found if row.fields.get("run") == session.run}
    return [row for row in found if row.seq in mine or row.fields.get("intent") in mine]


def put_report(tx: Transaction, report: RunReport) -> None:
    """One report per run; the first is never overwritten."""
    at = tx.clock.now_ns()
    tx.run(
        "INSERT INTO reports (run, principal, session, at, body) VALUES (:run, :principal, :session, :at, :body)"
        " ON CONFLICT (run) DO NOTHING",
        run=escape_surrogates(report.run),
        principal=escape_surrogates(report.principal),
        session=escape_surrogates(report.session),
        at=at,
        body=json.dumps(asdict(replace(report, at=at))),
    )
    found = {"issues": len(report.issues), "missing": len(report.missing_steps), "reason": report.summary}
    whose = {"principal": report.principal, "session": report.session, "run": report.run}
    asked = report.opinion
    # What left this machine, and to whom, is recorded even if nothing came of it.
    sent = {"asked": asked.model, "place": asked.place, "sent_bytes": asked.sent} if asked else {}
    tx.append(RowKind.REPORT, whose | found | sent)


def find_report(view: View, run: str | None, principal: str | None = None) -> RunReport | None:
    """The newest if no run is named; if no principal is named, any person's."""
    conditions = ["1 = 1"]
    values: dict[str, Any] = {}
    if run is not None:
        conditions.append("run = :run")
        values["run"] = escape_surrogates(run)
    if principal is not None:
        conditions.append("principal = :principal")
        values["principal"] = escape_surrogates(principal)
    where = " AND ".join(conditions)
    row = view.fetch_one(f"SELECT body FROM reports WHERE {where} ORDER BY number DESC LIMIT 1", **values)  # noqa: S608  # our own words
    return parse_report(json.loads(row["body"])) if row else None


def _find_hold_row(view: View, principal: str, session: str) -> dict[str, Any] | None:
    return view.fetch_one(
        "SELECT * FROM holds WHERE principal = :principal AND session = :session",
        principal=escape_surrogates(principal),
        session=escape_surrogates(session),
    )


def hold_from_row(row: Mapping[str, Any]) -> Hold | None:
    """None if the row only grants further units. An unreadable row counts as a hold."""
    try:
        body = json.loads(row["body"])
        if body["by"] == "":
            return None
        stopped = body.get("stopped") is True
        return Hold(
            Holder(body["by"]), str(body["reason"]), str(body.get("run", "")), to_whole_number(row["at"]), stopped
        )
    except (ValueError, TypeError, KeyError):
        return Hold(Holder.PERSON, "what paused it cannot be read", at=to_whole_number(row["at"]))


def _write_hold(tx: Transaction, principal: str, session: str, body: Mapping[str, Any]) -> None:
    tx.run(
        "INSERT INTO holds (principal, session, at, body) VALUES (:principal, :session, :at, :body)"
        " ON CONFLICT (principal, session) DO UPDATE SET at = excluded.at, body = excluded.body",
        principal=escape_surrogates(principal),
        session=escape_surrogates(session),
        at=tx.clock.now_ns(),
        body=json.dumps(dict(body)),
    )


def _clear_holds(tx: Transaction, principal: str, session: str | None) -> None:
    """Delete what holds this session, or every session of the principal if none is named."""
    if session is None:
        tx.run("DELETE FROM holds WHERE principal = :principal", principal=escape_surrogates(principal))
        return
    where = {"principal": escape_surrogates(principal), "session": escape_surrogates(session)}
    tx.run("DELETE FROM holds WHERE principal = :principal AND session = :session", **where)


def _record_run_state(tx: Transaction, principal: str, session: str, way: tuple[str, str], reason: str) -> None:
    before, after = ({"run_state": one} for one in way)
    record_transition(tx, before, after, {"principal": principal, "session": session, "reason": reason, "scope": "now"})
