"""How does a posture change take effect exactly once, whichever process notices the moment?

Every change is made in the transaction that records its cause: your command, the outcome of a call, the end of a
unit. Two processes never make the same change, because the first to commit removes it from the list.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcp_server.model.posture import AXES, ChangeScope, ChangeSource, PostureChange, PostureChoice, format_value
from mcp_server.model.tools import READING
from mcp_server.policy import posture
from mcp_server.policy.badge import describe_wish
from mcp_server.policy.posture import PostureStep, ProcessWork
from mcp_server.state.engine.rows import OutcomeRow, RowKind, VersionMoved
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.ledger import record_transition
from mcp_server.state.posture import keep_choice, load_choice
from mcp_server.state.verify import (
    SEAL,
    find_taken_over_state,
    format_adoption_seal,
    is_adopted,
    is_process_running,
    read_body,
)

RUN_COMPLETED = "closed, because the run it was requested in was completed"
STOPPED = "closed, because the run it was requested in was stopped"
LOOKED_AT = 20_000
"""How many of the newest rows are searched for an open unit; one that was silent for longer counts as over."""
UNSETTLED = """SELECT principal FROM posture WHERE axes LIKE '%"waiting":[{%' OR axes LIKE '%"trials":[{%'"""


def request_posture_change(
    tx: Transaction, principal: str, change: PostureChange, epoch: int | None = None
) -> PostureChoice | VersionMoved:
    """`epoch`: the change was requested at that epoch and counts only if nothing has changed since."""
    current = load_choice(tx, principal)
    start = current or PostureChoice()
    if epoch is not None and start.epoch != epoch:
        return VersionMoved(current)
    work = ProcessWork() if change.unconfirmed else _find_open_work(tx, principal, change)
    made = replace(change, asked=tx.clock.now_ns())
    if change.door is ChangeSource.TERMINAL and not change.unconfirmed:
        record_adoption(tx)
    return _write_steps(tx, principal, posture.request_change(start, made, work), "")


def record_adoption(tx: Transaction) -> None:
    """Record that you chose at a terminal: the state that was set aside is then no longer a fault of the ledger."""
    found = find_taken_over_state(tx)
    if found and found.get("tampered") and not is_adopted(tx):
        reason = "the user chose a posture at a terminal"
        tx.append(RowKind.ADOPTION, {"reason": reason, SEAL: tx.seal.compute_mac(format_adoption_seal(tx))})


def open_request(
    tx: Transaction, principal: str, wanted: PostureChange, epoch: int | None, carried: Collection[str]
) -> PostureChange | VersionMoved:
    """Store what a client requests and you have yet to agree to. If it is open already, return that request.
    `carried`: the ids of the requests whose questions the client brings back."""
    current = load_choice(tx, principal)
    start = current or PostureChoice()
    if same := posture.find_same_request(start, wanted, carried, tx.clock.now_ns()):
        return same
    from mcp_server.state import messages  # a choice at a terminal has no use for it

    for one in posture.list_replaced_requests(start, wanted):
        messages.drop_note(tx, f"request-{one.id}")
    request = replace(wanted, tries=posture.count_used_tries(start, wanted, tx.clock.now_ns()))
    made = request_posture_change(tx, principal, request, epoch)
    return made if isinstance(made, VersionMoved) else request


def confirm_request(tx: Transaction, principal: str, id: str, epoch: int | None) -> PostureChoice | VersionMoved | None:
    """Make the change that you agreed to in a client; None if it is no longer open. `epoch`: as when it was asked."""
    current = load_choice(tx, principal)
    if epoch is not None and (current or PostureChoice()).epoch != epoch:
        return VersionMoved(current)
    return confirm_change(tx, principal, id, ChangeSource.PROMPT)


def leave_request(tx: Transaction, principal: str, id: str, tries: int, why: str) -> PostureChange | None:
    """Record what became of a request's question, without changing anything; None if it is no longer open."""
    current = load_choice(tx, principal)
    found = posture.find_confirmable_change(current, id, tx.clock.now_ns()) if current else None
    if current is None or found is None:
        return None
    step = posture.leave_request(current, found, tries, why)
    _write_steps(tx, principal, [step], "")
    return step.change


def close_requests(tx: Transaction, principal: str, session: str | None, why: str) -> None:
    """Close what clients requested in this session, or in all, because its run is over."""
    current = load_choice(tx, principal) if principal in find_unsettled_principals(tx) else None
    if current and (steps := posture.close_requests(current, session, why)):
        _write_steps(tx, principal, steps, "")
        # So that a client that still shows the question takes it away.
        tx.changed = True


def confirm_change(
    tx: Transaction, principal: str, id: str, door: ChangeSource = ChangeSource.TERMINAL
) -> PostureChoice | None:
    """Apply the confirmation that a change was waiting for; None if there is no such change, or it waited too long.
    `door`: where you confirm it, whatever asked for it."""
    current = load_choice(tx, principal)
    found = posture.find_confirmable_change(current, id, tx.clock.now_ns()) if current else None
    if current is None or found is None:
        return None
    change = replace(found, unconfirmed=False, door=door, tries=0, unasked=False)
    if door is ChangeSource.TERMINAL:
        from mcp_server.state import messages  # as above

        record_adoption(tx)
        messages.mark_messages_read(tx, [f"request-{id}"])
    if change.units:
        from mcp_server.state import runs  # no other change of the posture needs it

        runs.resume_session(tx, principal, change.session or None, change.units)
        return _write_steps(tx, principal, [posture.release_change(current, change)], "")
    return _write_steps(
        tx, principal, posture.request_change(current, change, _find_open_work(tx, principal, change)), ""
    )


def drop_changes(tx: Transaction, principal: str, ids: Iterable[str]) -> list[PostureStep]:
    current = load_choice(tx, principal)
    turns = posture.drop_changes(current, ids) if current else []
    if turns:
        _write_steps(tx, principal, turns, "")
    return turns


def end_unit(tx: Transaction, principal: str, session: str, milestone: bool = False) -> None:
    """A unit of work ended; with `milestone`, its whole run."""
    current = load_choice(tx, principal) if principal in find_unsettled_principals(tx) else None
    if current and (turns := posture.end_unit(current, session, milestone)):
        _write_steps(tx, principal, turns, session)
    if milestone:
        close_requests(tx, principal, session, RUN_COMPLETED)


def end_call(tx: Transaction, outcome: OutcomeRow) -> None:
    """Release what waited for the end of this call."""
    if not find_unsettled_principals(tx):
        return
    row = tx.fetch_one("SELECT body FROM ledger WHERE seq = :seq", seq=outcome.intent)
    intent = read_body(row["body"]) if row else {}
    principal = str(intent.get("principal"))
    release_waiting_changes(tx, principal, outcome.intent)
    completed = outcome.tool == "complete" and outcome.ending == "done"
    if completed or _is_change(intent):
        end_unit(tx, principal, outcome.session, completed)


def release_waiting_changes(tx: Transaction, principal: str, ended: int = 0) -> None:
    """Release what waited for this call, and for calls whose process is gone."""
    current = load_choice(tx, principal) if principal in find_unsettled_principals(tx) else None
    if current is None:
        return
    turns = posture.end_calls(current, lambda seq, process: seq == ended or _is_process_gone(tx, process))
    if turns:
        _write_steps(tx, principal, turns, "")


def record_process_end(tx: Transaction) -> None:
    """Record that this process ends, and with it everything it still ran."""
    tx.append(RowKind.STOP, {})
    for principal in find_unsettled_principals(tx):
        current = load_choice(tx, principal)
        if current and (turns := posture.end_calls(current, lambda _seq, process: process == tx.process)):
            _write_steps(tx, principal, turns, "")


def settle_dead_calls(tx: Transaction) -> None:
    """At a start: end the calls of processes that were killed."""
    for principal in find_unsettled_principals(tx):
        release_waiting_changes(tx, principal)


def find_unsettled_principals(tx: Transaction) -> frozenset[str]:
    """Find principals with pending changes. The answer is kept until a posture is written, here or elsewhere."""
    if tx.unsettled is None:
        tx.unsettled = frozenset(name for (name,) in tx.link.cursor.execute(UNSETTLED))
    return tx.unsettled


def _is_process_gone(tx: Transaction, process: str) -> bool:
    return process != tx.process and not is_process_running(process)


def _write_steps(tx: Transaction, principal: str, turns: Sequence[PostureStep], session: str) -> PostureChoice:
    """Record the changes and write the last of them to the file."""
    now = turns[0].before
    for turn in turns:
        # What needs a confirmation changes nothing yet, so nothing that was decided before becomes void.
        moves = turn.event and not (turn.change.unconfirmed or turn.change.units)
        before, after = now, replace(turn.after, epoch=now.epoch + bool(moves))
        now = after
        if turn.event:
            why = {"reason": turn.change.reason, "scope": turn.change.scope, "event": turn.event}
            whose = {"principal": principal, "session": session or turn.change.session, "door": turn.change.door}
            whose["wanted"] = (
                f"{', '.join(describe_change(turn.change)) or f'next {turn.change.units}'}, {turn.change.scope}"
            )
            record_transition(
                tx, build_ledger_choice(before), build_ledger_choice(after), {**whose, **why, "change": turn.change.id}
            )
    if any(one.unconfirmed for one in turns[0].before.waiting):
        _close_notes(tx, turns)
    keep_choice(tx, principal, now)
    return now


def _close_notes(tx: Transaction, turns: Sequence[PostureStep]) -> None:
    """Say in the message about a request that it is no longer open, so that it offers no command that would fail."""
    from mcp_server.state import messages  # as above

    for turn in turns:
        left = {one.id for one in turn.after.waiting}
        for one in turn.before.waiting:
            if not one.unconfirmed or one.id in left:
                continue
            if one.id != turn.change.id:
                why = "a newer choice or request replaced it"
            elif turn.event in ("dropped", RUN_COMPLETED, STOPPED):
                why = "you cancelled it" if turn.event == "dropped" else turn.event
            else:
                continue  # it was answered, and the code that took the answer says so
            wish = f"Nothing was changed by the request {one.id} ({describe_wish(one)}): {why}."
            messages.rewrite_note(tx, f"request-{one.id}", wish)


def build_ledger_choice(one: PostureChoice) -> dict[str, object]:
    """Build a choice as the ledger records it: what was chosen, and what is pending."""
    waiting = [f"{', '.join(describe_change(change)) or 'next'}, {change.scope}" for change in one.waiting]
    return {**one.axes, **one.unasked, "epoch": one.epoch, **({"waiting": waiting} if waiting else {})}


def describe_change(change: PostureChange) -> list[str]:
    return [f"{axis} {format_value(change.axes[axis])}" for axis in AXES if axis in change.axes]


def _find_open_work(tx: Transaction, principal: str, change: PostureChange) -> ProcessWork:
    match change.scope:
        case ChangeScope.AFTER_CURRENT_TOOL:
            return ProcessWork(calls=tuple(find_open_calls(tx, principal, change.session)))
        case ChangeScope.AFTER_CURRENT_UNIT:
            return ProcessWork(unit=has_open_unit(tx, principal, change.session))
        case ChangeScope.FOR_NEXT_UNIT:
            # The reading so far is for the change to come, which is what the user means; one under way is not.
            running = _find_open_intents(tx, principal, change.session)
            return ProcessWork(unit=any(_is_change(row) for _, row in running))
        case ChangeScope.NOW | ChangeScope.NEXT_MILESTONE:
            return ProcessWork()


def find_open_calls(view: View, principal: str, session: str = "") -> list[tuple[int, str]]:
    """Return the calls running now, by number and process."""
    return [(seq, str(row.get("process"))) for seq, row in _find_open_intents(view, principal, session)]


def _find_open_intents(view: View, principal: str, session: str) -> Iterator[tuple[int, dict[str, Any]]]:
    over: set[object] = set()
    for seq, row in _read_newest_rows(view):
        match row.get("kind"):
            case RowKind.OUTCOME:
                over.add(row.get("intent"))
            case RowKind.STOP:
                over.add(row.get("process"))
            case RowKind.INTENT if row.get("principal") == principal and session in ("", row.get("session")):
                process = str(row.get("process"))
                if seq not in over and process not in over and is_process_running(process):
                    yield seq, row
            case _:
                pass


def has_open_unit(view: View, principal: str, session: str = "") -> bool:
    """Has a session begun something since its last change or `complete`, in a process that still runs?"""
    over: set[object] = set()
    for seq, row in _read_newest_rows(view):
        whose, process = row.get("session"), row.get("process")
        match row.get("kind"):
            case RowKind.STOP:
                over.add(process)
            case RowKind.OUTCOME if row.get("tool") == "complete" and row.get("ending") == "done":
                over.add(whose)
            case RowKind.OUTCOME:
                over.add(row.get("intent"))
            case RowKind.INTENT if row.get("principal") == principal and session in ("", whose):
                if _is_change(row) and seq in over:
                    # This change ended a unit; what the session did before it belongs to that unit.
                    over.add(whose)
                if (
                    not {whose, process} & over
                    and _is_unit_ongoing(row, seq in over)
                    and is_process_running(str(process))
                ):
                    return True
            case _:
                pass
    return False


def _is_unit_ongoing(intent: Mapping[str, Any], concluded: bool) -> bool:
    """Is this call's unit still open, as far as the call can tell?"""
    return intent.get("tool") != "complete" and not (intent.get("passing") and concluded)


def _is_change(intent: Mapping[str, Any]) -> bool:
    """True if the call changes something, which ends a unit. One without a known effect may have."""
    return intent.get("effect") not in READING


def _read_newest_rows(view: View) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = view.fetch_each("SELECT seq, body FROM ledger ORDER BY seq DESC LIMIT :most", most=LOOKED_AT)
    yield from ((seq, read_body(body)) for seq, body in rows)
