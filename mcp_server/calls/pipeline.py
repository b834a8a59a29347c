"""How does a call run? Find, enter, decide, refuse, ask, act, record: every call of every client goes through `run`.

The rule for editing: a step is a method and a line in `run`; nothing about a call is decided anywhere else.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.lowlevel

from mcp_server.calls.approval_binding import look_up_facts
from mcp_server.calls.approval_text import build_lapsed_approval_problem
from mcp_server.calls.approvals import ApprovalGrant, Approvals
from mcp_server.calls.context import PortFactories, ToolContext
from mcp_server.calls.documents import NOBODY_COMES_BACK
from mcp_server.calls.ledger import CallRecord, LedgerRecorder
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.menus import MenuNavigator
from mcp_server.calls.phases import PhaseLogs
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures
from mcp_server.calls.request import CallRequest, Interruption, ResolvedCall, build_nested_call
from mcp_server.calls.resolver import (
    CallResolver,
    advise_other_mode,
    advise_other_tools,
    advise_reading_first,
    advise_thinking_with_handle,
    announce_move,
)
from mcp_server.calls.results import ResultFilter, check_ending
from mcp_server.calls.runs import RunLifecycle
from mcp_server.calls.stops import RunningCalls, mark_acting, mark_asking
from mcp_server.calls.summaries import SummarySchedule
from mcp_server.model.menus import Mode
from mcp_server.model.policy import Call, Decision, Layer, Policy, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.reports import LATEST, format_summary_address
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.sessions import Session
from mcp_server.model.tools import READING, Arguments, Demand, Effect
from mcp_server.policy.arguments import normalize_arguments
from mcp_server.policy.decision import decide
from mcp_server.policy.refusals import explain_mode_not_entered
from mcp_server.policy.rule_trees import build_hidden_test
from mcp_server.state.engine.rows import ApprovalLapsed, Begun, PostureMoved, RunPaused

NO_FACTS: Arguments = {}


@dataclass(frozen=True)
class Pipeline:
    ruling: CurrentPolicy
    postures: CurrentPostures
    finding: CallResolver
    recorder: LedgerRecorder
    approvals: Approvals
    course: RunLifecycle
    showing: ResultFilter
    ports: PortFactories
    desk: Callable[[LiveSession], MenuNavigator]
    run_memory: SummarySchedule
    phases: PhaseLogs
    live_calls: RunningCalls
    failed: Callable[[str, BaseException], None]
    """Where an exception that is our own fault goes; never to the client."""

    @property
    def policy(self) -> Policy:
        return self.ruling.policy

    async def run(self, asked: CallRequest) -> Ending:
        """One call, from what was asked to what is shown. Nothing fails open: no record, no run."""
        try:
            await self.ruling.renew()
            found = await self.finding.find(asked)
            if isinstance(found, Problem):
                return await self.unfound(asked, found)
            await self.live_calls.enlist()
            live = self.live_calls.enter(found)
            try:
                with live.scope:
                    entered = await self.enter(found)
                    return await self.decided(entered) if isinstance(entered, ResolvedCall) else entered
                # Only whom the person's word ended comes here.
                return self.showing.problem(live.problem())
            finally:
                self.live_calls.leave(live)
        except Refusal as trouble:
            # The state could not be written: what has no record does not run.
            return self.showing.problem(trouble.problem)

    async def decided(self, found: ResolvedCall) -> Ending:
        """Decide, ask where that is the answer, and decide again: what holds is what holds at the end of that."""
        yes: ApprovalGrant | None = None
        while True:
            found = await self.finding.looked_through(await self.current(found))
            posture = await self.postures.of(found.asked.principal)
            await self.course.settle(found.seat)
            decision = self.decide(found, posture, await self.phases.spent(found.seat), yes is not None)
            if decision.verdict is Verdict.DENY:
                return await self.refuse(found, posture, decision)
            if found.seat.passing and found.tool.stays(found.arguments):
                return await self.unfound(found.asked, NOBODY_COMES_BACK)
            if decision.verdict is Verdict.ASK:
                answer = await self.ask(found, posture, decision)
                if isinstance(answer, Problem):
                    return self.showing.problem(answer)
                yes = answer
                continue
            # Looked up anew: what it stands on may have changed since the person was asked.
            facts = await self.standing(found, posture, decision) if yes else NO_FACTS
            if isinstance(facts, Problem):
                return await self.unasked(found, posture, facts)
            begun = await self.begin(found, posture, decision, yes, facts)
            match begun:
                case int():
                    return await self.act(found, posture, decision, begun, facts)
                case ApprovalLapsed():
                    return await self.unasked(found, posture, build_lapsed_approval_problem(found.tool, begun.why))
                case PostureMoved():
                    # The person changed the posture since; what was decided under the old one does not count.
                    await self.postures.refresh()
                case RunPaused():
                    await self.course.holds.refresh()

    async def current(self, found: ResolvedCall) -> ResolvedCall:
        """The call under the rules that hold now, which may be about places that none was about before."""
        before = self.policy
        await self.ruling.renew()
        return found if self.policy is before else replace(found, led=self.finding.led(found.tool, found.arguments))

    async def begin(
        self, found: ResolvedCall, posture: Posture, decision: Decision, yes: ApprovalGrant | None, facts: Arguments
    ) -> Begun:
        """On record, and its place in the budget taken before anything is waited for."""
        found.seat.spending.take(found.tool)
        begun: Begun | None = None
        try:
            begun = await self.recorder.commence(found, posture, decision, yes, facts)
            return begun
        finally:
            if not isinstance(begun, int):
                found.seat.spending.give_back(found.tool)

    def decide(
        self,
        found: ResolvedCall,
        posture: Posture,
        in_phase: int,
        approved: bool = False,
        session: Session | None = None,
    ) -> Decision:
        spent = found.seat.spending.so_far(in_phase)
        within = found.asked.within.tool if found.asked.within else None
        call = Call(found.tool.name, found.arguments, approved, spent, within, found.led, found.beneath)
        return decide(found.tool, call, session or found.seat.session, posture, self.policy)

    async def enter(self, found: ResolvedCall) -> ResolvedCall | Ending:
        """What a carrier does before it is out of sight: enter its mode, unless it is itself forbidden."""
        if found.carrier is None:
            return found
        posture = await self.postures.of(found.asked.principal)
        carrying = Call(found.carrier.name, found.asked.arguments)
        decision = decide(found.carrier, carrying, found.seat.session, posture, self.policy)
        if decision.verdict is Verdict.DENY:
            return await self.refuse(replace(found, tool=found.carrier), posture, decision)
        mode = self.finding.wished(found)
        if isinstance(mode, Mode):
            there = await self.there(found, posture, mode)
            if there.verdict is Verdict.DENY:
                return await self.refuse(found, posture, there)
        entered = await self.finding.enter(found, mode) if isinstance(mode, Mode) else mode or found
        return await self.unfound(found.asked, entered) if isinstance(entered, Problem) else entered

    async def there(self, found: ResolvedCall, posture: Posture, mode: Mode) -> Decision:
        """What becomes of a carried call in the mode that it is to enter first: one that is refused moves nothing."""
        found = await self.finding.looked_through(await self.current(found))
        await self.course.settle(found.seat)
        session = replace(found.seat.session, mode=mode.name)
        decision = self.decide(found, posture, await self.phases.spent(found.seat), session=session)
        return explain_mode_not_entered(found.tool, mode, decision, self.policy)

    async def unfound(self, asked: CallRequest, problem: Problem) -> Ending:
        posture = await self.postures.of(asked.principal)
        await self.recorder.unfound(asked, posture, problem)
        return self.showing.problem(problem)

    async def refuse(self, found: ResolvedCall, posture: Posture, decision: Decision) -> Ending:
        await self.recorder.refuse(found, posture, decision)
        if decision.code is Code.BUDGET_SPENT:
            await self.course.overspent(found.seat, decision.reason)
        problem = advise_other_mode(
            found, advise_thinking_with_handle(found, build_refusal_problem(decision)), self.policy
        )
        return self.showing.problem(advise_other_tools(found, problem, decision.instead, self.policy))

    async def ask(self, found: ResolvedCall, posture: Posture, decision: Decision) -> ApprovalGrant | Problem:
        """A yes of the person's, or why there is none. Where a question ends the call, that is raised."""
        facts = await self.standing(found, posture, decision)
        if isinstance(facts, Problem):
            await self.unasked(found, posture, facts)
            return facts
        wanted, judged, leads = self.recorder.asking(found, posture, decision, facts)
        with mark_asking():
            answer = await self.approvals.ask(found, wanted, decision, judged, leads)
        if isinstance(answer, Problem) and "approval" not in (answer.data or {}):
            await self.unasked(found, posture, answer)
        return answer

    async def standing(self, found: ResolvedCall, posture: Posture, decision: Decision) -> Arguments | Problem:
        """What else decides what this call does, from ports that may only read."""
        if found.tool.stands_on is None:
            return {}
        context = self._context(found, posture, decision, self.desk(found.seat), 0)
        reading = replace(context, demand=replace(context.demand, effect=Effect.READ_LOCAL))
        return await look_up_facts(found.tool, reading, found.arguments, partial(self.failed, found.tool.name))

    async def unasked(self, found: ResolvedCall, posture: Posture, problem: Problem) -> Ending:
        """On record: a call that needed a yes and has none."""
        decision = Decision(Verdict.DENY, Layer.CONFIRMATION, problem.code, problem.message)
        await self.recorder.refuse(found, posture, decision)
        return self.showing.problem(problem)

    async def act(
        self, found: ResolvedCall, posture: Posture, decision: Decision, record: int, facts: Arguments
    ) -> Ending:
        effect = decision.demand.effect if decision.demand else found.tool.effect
        underway = CallRecord(record, found.seat.session.run, time.perf_counter_ns(), effect)
        desk = self.desk(found.seat)
        desk.named, desk.fixed, desk.carriers = found.handle is not None, found.asked.fixed, found.asked.carriers
        context = self._context(found, posture, decision, desk, record)
        if facts:
            context = replace(context, stands=facts)
        found.seat.spending.begin()
        mark_acting()
        try:
            # Taken back while the record was written: then there is a record, and nothing runs.
            await anyio.lowlevel.checkpoint_if_cancelled()
            ending = await self._ended(found, context)
            shown = await self.showing.shown(advise_reading_first(found, ending, self.policy), found.tool)
        except Interruption as interruption:
            found.seat.spending.give_back(found.tool)
            self.recorder.conclude(found, underway, interruption.recorded_as)
            raise
        except anyio.get_cancelled_exc_class():
            found.seat.spending.give_back(found.tool)
            self.recorder.conclude(found, underway, "cancelled")
            raise
        before = None
        if not found.tool.meta:
            self.spend(found, shown)
            changed = decision.demand is not None and decision.demand.effect not in READING
            before = await self.course.step(found.seat, changed, isinstance(shown, Problem))
        how = "done" if isinstance(shown, Done) else "problem"
        self.recorder.conclude(found, underway, how, shown, len(ending.text))
        await announce_move(found.asked, desk, before)
        await self.remember(found, underway, shown)
        return shown

    async def remember(self, found: ResolvedCall, underway: CallRecord, shown: Ending) -> None:
        """What the run came to so far, where it has grown long; whoever follows that summary is told."""
        size = found.measure[1] + len(shown.text)
        if await self.run_memory.turned(underway.run, underway.intent, size):
            for run in (underway.run, LATEST):
                await found.asked.client.changed("resource", format_summary_address(run))

    def spend(self, found: ResolvedCall, shown: Ending) -> None:
        found.seat.spending.add(shown, f"{found.tool.name} {found.measure[0]}")
        if not found.seat.passing:
            found.seat.session = replace(found.seat.session, steps=found.seat.session.steps + 1)

    async def _ended(self, found: ResolvedCall, context: ToolContext) -> Ending:
        """The tool's own ending, or the problem that stands for whatever it raised."""
        tool, seconds = found.tool, found.tool.timeout
        try:
            with anyio.move_on_after(seconds):
                arguments = normalize_arguments(tool.arguments, found.arguments)
                await self.phases.begin(found, context.demand)
                ending = check_ending(await tool.run(context, arguments))
                await self.phases.witness(found, ending)
                return ending
            return Problem(
                Code.TIMEOUT, f"`{tool.name}` did not finish within {seconds:g} s and was stopped.", "Ask for less."
            )
        except Refusal as refused:
            return refused.problem
        except Interruption:
            raise
        except (Exception, SystemExit) as fault:
            # A pack is somebody else's code: whatever it raises or returns ends this call and no more.
            self.failed(tool.name, fault)
            return Problem(
                Code.INTERNAL, f"`{tool.name}` failed inside menugate; its log says how.", "Try another way."
            )

    def _context(
        self, found: ResolvedCall, posture: Posture, decision: Decision, desk: MenuNavigator, record: int
    ) -> ToolContext:
        profile = posture.capped(self.policy.ceiling).profile
        demand = decision.demand or Demand(found.tool.effect, found.tool.profile)
        call = partial(self.through, found, record)
        hides = build_hidden_test(found.tool, found.readings, self.policy)
        return ToolContext(self.ports, found, profile, call, found.seat.session, demand, desk, hides)

    async def through(self, found: ResolvedCall, record: int, tool: str, arguments: Arguments) -> Ending:
        """A call that a tool makes on the way to its answer is a call like any other."""
        asked = build_nested_call(found, record, tool, arguments, self.policy)
        return asked if isinstance(asked, Problem) else await self.run(asked)


def build_refusal_problem(decision: Decision) -> Problem:
    data = {"layer": str(decision.layer), "rule": decision.rule} if decision.layer else None
    return Problem(decision.code or Code.INTERNAL, decision.reason, decision.way_out, data)
