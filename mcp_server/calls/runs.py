"""How does a run proceed? It opens with a thought if the person wants one, pauses, is delivered, and is reviewed."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import anyio
from msgspec.structs import replace

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.pauses import Holds
from mcp_server.calls.reviews import FinishedRun, RunReview
from mcp_server.calls.sessions import Sessions
from mcp_server.guards.redaction import Redactor
from mcp_server.model.posture import Posture, Stage
from mcp_server.model.reports import RunReport, format_report_address
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.policy.reasoning import HEADINGS, ReasoningOutcome, parse_thought
from mcp_server.policy.stages import DUTIES, FINAL, StageDuty, get_current_stage, get_next_stage, is_reasoning_on
from mcp_server.state import runs
from mcp_server.state.store import Store

T = TypeVar("T")
AGAIN = {
    StageDuty.MACRO: f"Call `think` again with the headings {', '.join(HEADINGS)}, each with a colon and a few words.",
    StageDuty.MICRO: "Call `think` again with three to eight points, each on a line starting with `- `.",
}
NOTED = "Noted. Continue."


@dataclass
class RunLifecycle:
    store: Store
    sessions: Sessions
    holds: Holds
    posture: Callable[[str], Posture]
    """The posture that a principal chose, as far as it is known."""
    redactor: Redactor
    review: RunReview
    learn: Callable[[Session, str], Awaitable[str]]
    """Remembers what a successful run leaves behind, and says in words what that was."""
    _delivering: set[str] = field(default_factory=set[str])

    async def refresh_hold(self, live: LiveSession) -> None:
        """Update whether this live session is paused. Costs nothing unless it is: the person may have resumed it at a
        terminal since the state was read."""
        if self.holds.known is None or self.holds.find_hold(live.session) is not None:
            await self.holds.refresh()
        live.set_hold(self.holds.find_hold(live.session))

    async def think(self, live: LiveSession, text: str) -> Ending:
        """Drop the thought itself, but keep its outcome if reasoning is on. It advances the run."""
        before, posture = live.session, self.posture(live.session.principal)
        stage = get_current_stage(before, posture)
        if stage is None or stage in FINAL:
            return Done(NOTED)
        duty = DUTIES.get(stage, StageDuty.NONE) if is_reasoning_on(posture) else StageDuty.NONE
        outcome = parse_thought(text, duty)
        if isinstance(outcome, str):
            message = f"reasoning is on, and this thought is not complete: {outcome}."
            return Problem(Code.REASONING_INCOMPLETE, message, AGAIN[duty])
        if duty is StageDuty.NONE and stage is not Stage.WARMUP:
            return Done(NOTED)
        after = replace(before, stage=Stage.ACT, reasoned=True)
        problem = await self.sessions.advance(live, replace(before, stage=stage), after, f"think {duty}")
        if problem is not None:
            return problem
        await self._keep_thought(live.session, outcome)
        return Done(
            "Noted; the text itself is not kept. Continue.",
            to_outcome_data(outcome) if duty is not StageDuty.NONE else None,
        )

    async def _keep_thought(self, session: Session, outcome: ReasoningOutcome) -> None:
        clean = replace(
            outcome,
            plan_delta=self.redactor.redact(outcome.plan_delta),
            next_action=self.redactor.redact(outcome.next_action),
            known_risks=self.redactor.redact(outcome.known_risks),
        )
        await self.store.write(partial(runs.keep_thought, session=session, outcome=clean))

    async def advance_stage(self, live: LiveSession, changed: bool, failed: bool) -> Session | None:
        """Advance the stage after a call; return the session before the move, if any."""
        before = live.session
        if not is_reasoning_on(self.posture(before.principal)):
            return None
        after = get_next_stage(before.stage, changed, failed)
        if after is before.stage:
            return None
        reason = "a call failed" if failed else "a unit is done" if changed else "followed up"
        problem = await self.sessions.advance(live, before, replace(before, stage=after), reason)
        return None if problem else before

    async def pause_overspent_run(self, live: LiveSession, reason: str) -> None:
        """The run has spent its budget: pause it until the person grants another, or until it ends."""
        if live.passing or live.session.held is not None:
            return
        await self.holds.pause(live.session, Hold(Holder.BUDGET, reason, run=live.session.run))
        live.set_hold(self.holds.find_hold(live.session))

    async def complete(self, live: LiveSession, answer: str, status: str) -> Ending:
        """Deliver, review, begin a new run. What was delivered stays delivered, whatever fails afterwards."""
        if live.session.id in self._delivering:
            return Problem(Code.BUSY, "another `complete` call is delivering this run.", "Wait for its answer.")
        if live.session.stage in FINAL:
            # An earlier delivery did not finish: a stopped server, a full disk.
            await self.sessions.begin_next_run(live, "complete, for a run already delivered")
            return Done("The run was already delivered; a new one has started.", {"status": "delivered"})
        self._delivering.add(live.session.id)
        try:
            run, report = await finish_shielded(self._deliver_answer(live, answer, status))
            try:
                # The only part that waits for something outside, so the only part that can be cancelled.
                report = await self.review.add_model_opinion(run, report)
            except anyio.get_cancelled_exc_class():
                await finish_shielded(self._finish_run(live, answer, self.review.note_missing_opinion(report)))
                raise
            return await finish_shielded(self._finish_run(live, answer, report))
        finally:
            self._delivering.discard(live.session.id)

    async def _deliver_answer(self, live: LiveSession, answer: str, status: str) -> tuple[FinishedRun, RunReport]:
        run = live.session
        await self._move_to_stage(live, Stage.DELIVERY_CHECK, f"complete {status}")
        digest = hashlib.sha256(answer.encode("utf-8", "replace")).hexdigest()
        fields = {"status": status, "answer_sha256": digest, "answer_bytes": len(answer.encode("utf-8", "replace"))}
        await self.store.write(partial(runs.record_delivery, session=run, fields=fields))
        await self._move_to_stage(live, Stage.QA_REVIEW, "delivered")
        rows = await self.store.read(partial(runs.load_run_rows, session=run))
        looked_at = FinishedRun(run, status, rows, answer, self.posture(run.principal).profile)
        return looked_at, await self.review.build_report(looked_at)

    async def _finish_run(self, live: LiveSession, answer: str, report: RunReport) -> Ending:
        run = live.session
        await self.store.write(partial(runs.put_report, report=report))
        await self.sessions.begin_next_run(live, "reviewed")
        learned = await self.learn(run, answer) if report.status == "success" else ""
        return replace(build_completed_ending(report, learned), meta={"notes": {"answer": answer}})

    async def _move_to_stage(self, live: LiveSession, stage: Stage, reason: str) -> None:
        await self.sessions.advance(live, live.session, replace(live.session, stage=stage), reason)


async def finish_shielded(work: Awaitable[T]) -> T:
    """Finish even if the call is cancelled: halfway, a run would be delivered and not over."""
    with anyio.CancelScope(shield=True):
        return await work
    raise AssertionError("a scope that is never cancelled suppresses nothing")


def build_completed_ending(report: RunReport, kept: str) -> Done:
    found = [*report.issues, *report.missing_steps]
    text = f"Recorded as {report.status}. The run is over.{kept}"
    if found:
        text += f" A check of the run found: {'; '.join(found)}."
    if report.opinion and report.opinion.answered:
        # Its words are untrusted and are read in the report, where they are marked as such.
        text += " A model reviewed the run too; its opinion is in the report."
    return Done(text, {"status": report.status, "report": format_report_address(report.run), "findings": found})


def to_outcome_data(outcome: ReasoningOutcome) -> dict[str, str]:
    return {
        "plan_delta": outcome.plan_delta,
        "next_action": outcome.next_action,
        "known_risks": outcome.known_risks,
        "delivery_state": outcome.delivery_state,
    }
