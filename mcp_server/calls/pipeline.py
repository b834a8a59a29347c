"""How does a call run? Find, enter, decide, refuse, ask, act, record: every call of every client goes through `run`.

To add a step, add a method and a line in `run`. Nothing about a call is decided anywhere else.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.lowlevel
from anyio import to_thread

from mcp_server.calls.approval_binding import collect_targets, look_up_facts, rehearse_call
from mcp_server.calls.approval_text import STANDS, build_lapsed_approval_problem
from mcp_server.calls.approvals import ApprovalGrant, Approvals
from mcp_server.calls.context import PortFactories, ToolContext
from mcp_server.calls.documents import NOBODY_COMES_BACK
from mcp_server.calls.ledger import CallRecord, LedgerRecorder
from mcp_server.calls.menus import Navigators
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
from mcp_server.model.policy import Call, Decision, Layer, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.reports import LATEST, format_summary_address
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.tools import READING, Arguments, Demand, Effect, Tool
from mcp_server.policy.arguments import normalize_arguments
from mcp_server.policy.decision import decide
from mcp_server.policy.refusals import explain_mode_not_entered
from mcp_server.state.engine.rows import ApprovalLapsed, Begun, PostureMoved, RunPaused

NO_LEADS: Arguments = {}


@dataclass(frozen=True)
class Pipeline:
    current_policy: CurrentPolicy
    postures: CurrentPostures
    resolver: CallResolver
    recorder: LedgerRecorder
    approvals: Approvals
    runs: RunLifecycle
    result_filter: ResultFilter
    ports: PortFactories
    navigators: Navigators
    run_memory: SummarySchedule
    phases: PhaseLogs
    running_calls: RunningCalls
    failed: Callable[[str, BaseException], None]
    """Receives exceptions that are our own fault; the client never sees them."""

    async def run(self, asked: CallRequest) -> Ending:
        """Run one call, from the request to the answer. Nothing fails open: without a record, nothing runs."""
        try:
            if self.current_policy.stale:
                await self.current_policy.renew()
            found = await self.resolver.resolve_call(asked)
            if isinstance(found, Problem):
                return await self.refuse_unresolved_call(asked, found)
            running = await self.running_calls.enter(found)
            try:
                with running.scope:
                    entered = found if found.carrier is None else await self.enter_carried_mode(found, found.carrier)
                    return await self.decide_and_act(entered) if isinstance(entered, ResolvedCall) else entered
                # Only a call that the person stopped gets here.
                return self.result_filter.filter_problem(running.build_stopped_problem())
            finally:
                self.running_calls.leave(running)
        except Refusal as trouble:
            # The state could not be written, and without a record nothing runs.
            return self.result_filter.filter_problem(trouble.problem)

    async def decide_and_act(self, found: ResolvedCall) -> Ending:
        """Decide, ask if needed, decide again: only the last decision counts, because things may change while the
        person answers."""
        yes: ApprovalGrant | None = None
        while True:
            found = await self.bring_up_to_date(found)
            posture = await self.postures.get_current(found.asked.principal)
            decision = await self.decide(found, posture, approved=yes is not None)
            if decision.verdict is Verdict.DENY:
                if await self.postures.reread(found.asked.principal) != posture:
                    # The person has changed it at a terminal, and this server has not noticed yet.
                    continue
                return await self.refuse(found, posture, decision)
            if found.live.passing and found.tool.stays(found.arguments):
                return await self.refuse_unresolved_call(found.asked, NOBODY_COMES_BACK)
            if decision.verdict is not Verdict.ALLOW:
                answer = await self.ask_person(found, posture, decision)
                if isinstance(answer, Problem):
                    return self.result_filter.filter_problem(answer)
                yes = answer
                continue
            # Look again: the facts, and where its paths lead, may have changed since the person was asked.
            leads = await self.find_destinations(found, posture, decision) if yes is not None else NO_LEADS
            if isinstance(leads, Problem):
                return await self.refuse_unapproved_call(found, posture, leads)
            begun = await self.begin_call(found, posture, decision, yes, leads)
            match begun:
                case int():
                    return await self.act(found, posture, decision, begun, leads)
                case ApprovalLapsed():
                    return await self.refuse_unapproved_call(
                        found, posture, build_lapsed_approval_problem(found.tool, begun.why)
                    )
                case PostureMoved():
                    # The posture has changed; a decision under the old one does not count.
                    await self.postures.refresh()
                case RunPaused():
                    await self.runs.holds.refresh()

    async def bring_up_to_date(self, found: ResolvedCall) -> ResolvedCall:
        """Apply the current rules, and look again at the folder that the call takes as a whole, if it takes one."""
        if self.current_policy.stale:
            await self.current_policy.renew()
        policy = self.current_policy.policy
        if policy is not found.policy:
            # New rules may be about places, and this call may not have been the one that took them over.
            there = self.resolver.follow_links(found.tool, found.arguments, policy)
            found = replace(found, led=there, policy=policy)
        return await self.resolver.look_through_tree(found) if found.tool.tree else found

    async def begin_call(
        self, found: ResolvedCall, posture: Posture, decision: Decision, yes: ApprovalGrant | None, leads: Arguments
    ) -> Begun:
        """Record the call, after taking its place in the budget: parallel calls see it before anything is awaited."""
        found.live.common.spending.count_call(found.tool)
        begun: Begun | None = None
        try:
            begun = await self.recorder.record_intent(found, posture, decision, yes, leads)
            return begun
        finally:
            if not isinstance(begun, int):
                found.live.common.spending.uncount_call(found.tool)

    async def decide(
        self, found: ResolvedCall, posture: Posture, approved: bool = False, mode: Mode | None = None
    ) -> Decision:
        """`mode` is one to enter first: decide as if the session were there already."""
        live = found.live
        if self.runs.holds.known != {} or live.session.held is not None:
            await self.runs.refresh_hold(live)
        in_phase = await self.phases.count_phase_calls(live, live.session.phase) if live.session.phase else 0
        spent = live.common.spending.get_budget_use(in_phase)
        within = found.asked.within.tool if found.asked.within else None
        call = Call(found.tool.name, found.arguments, approved, spent, within, found.led, found.beneath)
        session = replace(live.session, mode=mode.name) if mode else live.session
        return decide(found.tool, call, session, posture, self.current_policy.policy)

    async def enter_carried_mode(self, found: ResolvedCall, carrier: Tool) -> ResolvedCall | Ending:
        """Enter the carrier's mode, if it names one, unless the carrier itself is forbidden."""
        posture = await self.postures.get_current(found.asked.principal)
        carrying = Call(carrier.name, found.asked.arguments)
        decision = decide(carrier, carrying, found.live.session, posture, self.current_policy.policy)
        if decision.verdict is Verdict.DENY:
            return await self.refuse(replace(found, tool=carrier), posture, decision)
        mode = self.resolver.find_wished_mode(found)
        if isinstance(mode, Mode):
            there = await self.decide_in_mode(found, posture, mode)
            if there.verdict is Verdict.DENY:
                return await self.refuse(found, posture, there)
        entered = await self.resolver.enter_mode(found, mode) if isinstance(mode, Mode) else mode or found
        return await self.refuse_unresolved_call(found.asked, entered) if isinstance(entered, Problem) else entered

    async def decide_in_mode(self, found: ResolvedCall, posture: Posture, mode: Mode) -> Decision:
        """Decide a carried call as if its mode were entered already: a call that will be refused must not move
        anything."""
        found = await self.bring_up_to_date(found)
        decision = await self.decide(found, posture, mode=mode)
        return explain_mode_not_entered(found.tool, mode, decision, self.current_policy.policy)

    async def refuse_unresolved_call(self, asked: CallRequest, problem: Problem) -> Ending:
        posture = await self.postures.get_current(asked.principal)
        await self.recorder.record_unresolved_call(asked, posture, problem)
        return self.result_filter.filter_problem(problem)

    async def refuse(self, found: ResolvedCall, posture: Posture, decision: Decision) -> Ending:
        await self.recorder.record_refusal(found, posture, decision)
        if decision.code is Code.BUDGET_SPENT:
            await self.runs.pause_overspent_run(found.live, decision.reason)
        policy = self.current_policy.policy
        problem = advise_other_mode(found, advise_thinking_with_handle(found, build_refusal_problem(decision)), policy)
        return self.result_filter.filter_problem(advise_other_tools(found, problem, decision.instead, policy))

    async def ask_person(self, found: ResolvedCall, posture: Posture, decision: Decision) -> ApprovalGrant | Problem:
        """Return the person's approval, or why there is none. Raises if the question ends the call."""
        leads = await self.rehearse(found, posture, decision) or await self.find_destinations(found, posture, decision)
        if isinstance(leads, Problem):
            leads = advise_reading_first(found, leads, self.current_policy.policy)
            await self.refuse_unapproved_call(found, posture, leads)
            return leads
        wanted, judged = self.recorder.prepare_question(found, posture, decision, leads)
        with mark_asking():
            answer = await self.approvals.ask(found, wanted, decision, judged, leads)
        if isinstance(answer, Problem) and "approval" not in (answer.data or {}):
            await self.refuse_unapproved_call(found, posture, answer)
        return answer

    async def rehearse(self, found: ResolvedCall, posture: Posture, decision: Decision) -> Problem | None:
        """Try a call that works on files alone: nobody is asked about one that would fail."""
        if not found.tool.rehearsed:
            return None
        context = replace(self._build_context(found, posture, decision, 0), rehearsal=True)
        return await rehearse_call(found.tool, context, found.arguments)

    async def find_destinations(self, found: ResolvedCall, posture: Posture, decision: Decision) -> Arguments | Problem:
        """Look up what else decides what this call does: the tool's own facts, through ports that may only read, and
        what its paths lead to."""
        facts: Arguments | Problem = NO_LEADS
        if found.tool.stands_on is not None:
            context = self._build_context(found, posture, decision, 0)
            reading = replace(context, demand=replace(context.demand, effect=Effect.READ_LOCAL))
            facts = await look_up_facts(found.tool, reading, found.arguments, partial(self.failed, found.tool.name))
        if isinstance(facts, Problem):
            return facts
        return await to_thread.run_sync(self.recorder.binding.find_destinations, found, decision, facts)

    async def refuse_unapproved_call(self, found: ResolvedCall, posture: Posture, problem: Problem) -> Ending:
        """Record that a call needed an approval and has none."""
        decision = Decision(Verdict.DENY, Layer.CONFIRMATION, problem.code, problem.message)
        await self.recorder.record_refusal(found, posture, decision)
        return self.result_filter.filter_problem(problem)

    async def act(
        self, found: ResolvedCall, posture: Posture, decision: Decision, record: int, leads: Arguments
    ) -> Ending:
        effect = decision.demand.effect if decision.demand else found.tool.effect
        underway = CallRecord(record, found.live.session.run, time.perf_counter_ns(), effect)
        context = self._build_context(found, posture, decision, record)
        if leads:
            context = replace(context, stands=leads.get(STANDS), targets=collect_targets(leads))
        spending = found.live.common.spending
        if spending.begun_ns is None:
            spending.start_clock()
        mark_acting()
        try:
            # Cancelled while its row was written: the row stays, the tool does not run.
            await anyio.lowlevel.checkpoint_if_cancelled()
            ending = await self._run_tool(found, context)
            if isinstance(ending, Problem):
                ending = advise_reading_first(found, ending, self.current_policy.policy)
            shown = await self.result_filter.filter_ending(ending, found.tool)
        except Interruption as interruption:
            found.live.common.spending.uncount_call(found.tool)
            self.recorder.record_outcome(found, underway, interruption.recorded_as)
            raise
        except anyio.get_cancelled_exc_class():
            found.live.common.spending.uncount_call(found.tool)
            self.recorder.record_outcome(found, underway, "cancelled")
            raise
        before = None
        if not found.tool.meta:
            self.spend(found, shown)
            if posture.reasoning:
                before = await self.runs.advance_stage(found.live, effect not in READING, isinstance(shown, Problem))
        how = "done" if isinstance(shown, Done) else "problem"
        self.recorder.record_outcome(found, underway, how, shown, len(ending.text))
        if before is not None or context.opened_desk is not None:
            await announce_move(found, context.opened_desk, before)
        if self.run_memory.count_call(underway.run, underway.intent, found.measure[1] + len(shown.text)):
            await self.update_run_summary(found, underway.run)
        return shown

    async def update_run_summary(self, found: ResolvedCall, run: str) -> None:
        """Summarise the run so far, which has grown long, and notify whoever subscribed to the summary."""
        if await self.run_memory.fold_run(run):
            for name in (run, LATEST):
                await found.asked.client.announce_change("resource", format_summary_address(name))

    def spend(self, found: ResolvedCall, shown: Ending) -> None:
        found.live.common.spending.add_result(shown, f"{found.tool.name} {found.measure[0]}")
        if not found.live.passing:
            found.live.session = replace(found.live.session, steps=found.live.session.steps + 1)

    async def _run_tool(self, found: ResolvedCall, context: ToolContext) -> Ending:
        """Run the tool. Returns its own ending, or a problem in place of whatever it raised."""
        tool, seconds = found.tool, found.tool.timeout
        try:
            with anyio.move_on_after(seconds):
                arguments = normalize_arguments(tool.arguments, found.arguments)
                if not found.live.session.phase:
                    return check_ending(await tool.run(context, arguments))
                return await self._run_in_phase(found, context, arguments)
            return Problem(
                Code.TIMEOUT, f"`{tool.name}` did not finish within {seconds:g} s and was stopped.", "Ask for less."
            )
        except Refusal as refused:
            return refused.problem
        except Interruption:
            raise
        except (Exception, SystemExit) as fault:
            # A pack is somebody else's code: whatever it raises or returns ends this call and no other.
            self.failed(tool.name, fault)
            return Problem(
                Code.INTERNAL, f"`{tool.name}` failed inside menugate; its log says how.", "Try another way."
            )

    async def _run_in_phase(self, found: ResolvedCall, context: ToolContext, arguments: Arguments) -> Ending:
        await self.phases.count_call(found, context.demand)
        ending = check_ending(await found.tool.run(context, arguments))
        await self.phases.record_proof(found, ending)
        return ending

    def _build_context(self, found: ResolvedCall, posture: Posture, decision: Decision, record: int) -> ToolContext:
        policy = self.current_policy.policy
        profile = posture.cap_profile(policy.ceiling).profile
        demand = decision.demand or Demand(found.tool.effect, found.tool.profile)
        call = partial(self.run_nested_call, found, record)
        open_desk = partial(self.navigators.open, found.asked, found.live, found.handle is not None)
        waiver = decision.rule if decision.verdict is Verdict.ALLOW else None
        return ToolContext(
            self.ports, found, profile, call, open_desk, policy, found.live.session, demand, waiver=waiver
        )

    async def run_nested_call(self, found: ResolvedCall, record: int, tool: str, arguments: Arguments) -> Ending:
        """Run a call that a tool makes for its own answer. It is a call like any other."""
        asked = build_nested_call(found, record, tool, arguments, self.current_policy.policy)
        return asked if isinstance(asked, Problem) else await self.run(asked)


def build_refusal_problem(decision: Decision) -> Problem:
    data = {"layer": str(decision.layer), "rule": decision.rule} if decision.layer else None
    return Problem(decision.code or Code.INTERNAL, decision.reason, decision.way_out, data)
