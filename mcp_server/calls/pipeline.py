"""How does a call run? Find, enter, decide, refuse, ask, act, record: every call of every client goes through `run`.

To add a step, add a method and a line in `run`. Nothing about a call is decided anywhere else.
"""

import time
from collections.abc import Callable
from functools import partial

import anyio
import anyio.lowlevel
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.approval_binding import collect_approved, look_up_facts, rehearse_call
from mcp_server.calls.approval_text import STANDS, build_lapsed_approval_problem
from mcp_server.calls.approvals import ApprovalGrant, Approvals
from mcp_server.calls.context import PortFactories, ToolContext
from mcp_server.calls.demands import decide_there, limit_to_reading
from mcp_server.calls.documents import NOBODY_COMES_BACK
from mcp_server.calls.ledger import CallRecord, LedgerRecorder
from mcp_server.calls.menus import Navigators
from mcp_server.calls.messages import Replies
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
from mcp_server.calls.results import ResultFilter, append_note, build_refusal_problem, check_ending
from mcp_server.calls.running_calls import RunningCalls, mark_acting, mark_asking
from mcp_server.calls.runs import RunLifecycle
from mcp_server.calls.stops import StopOrders
from mcp_server.calls.summaries import SummarySchedule
from mcp_server.model.menus import Mode
from mcp_server.model.policy import Call, Decision, Layer, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.results import Code, Ending, Problem, Question, Refusal, has_failed
from mcp_server.model.tools import READING, Arguments, Demand, Tool
from mcp_server.policy.arguments import normalize_arguments
from mcp_server.policy.decision import DecisionCase, decide
from mcp_server.policy.refusals import explain_mode_not_entered
from mcp_server.state.engine.rows import ApprovalLapsed, Begun, PostureMoved, RunPaused

NO_LEADS: Arguments = {}


class Pipeline(Struct, frozen=True):
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
    replies: Replies
    phases: PhaseLogs
    running_calls: RunningCalls
    stop_orders: StopOrders
    failed: Callable[[str, BaseException], None]
    """Receives exceptions that are our own fault; the client never sees them."""

    async def run(self, request: CallRequest) -> Ending:
        """Run one call, from the request to the answer. Nothing fails open: without a record, nothing runs."""
        try:
            if self.current_policy.stale:
                await self.current_policy.renew()
            call = await self.resolver.resolve_call(request)
            if isinstance(call, Problem):
                return await self.refuse_unresolved_call(request, call)
            if not self.stop_orders.enlisted:
                await self.stop_orders.enlist()
            running = self.running_calls.enter(call)
            try:
                with running.scope:
                    entered = call if call.carrier is None else await self.enter_carried_mode(call, call.carrier)
                    ending = await self.decide_and_act(entered) if isinstance(entered, ResolvedCall) else entered
                    if self.replies.pending == () or call.request.within:
                        return ending
                    return await self.replies.add_to_ending(ending, call.live.session)
                # Only a call that the person stopped gets here.
                return self.result_filter.filter_problem(running.build_stopped_problem())
            finally:
                self.running_calls.leave(running)
        except Refusal as refused:
            # The state could not be written, and without a record nothing runs.
            return self.result_filter.filter_problem(refused.problem)

    async def decide_and_act(self, call: ResolvedCall) -> Ending:
        """Decide, ask if needed, decide again: only the last decision counts, because things may change while the
        person answers."""
        grant: ApprovalGrant | None = None
        principal = call.request.principal
        while True:
            call = await self.bring_up_to_date(call)
            posture = await self.postures.get_current(principal)
            decision = await self.decide(call, posture, approved=grant is not None)
            if decision.verdict is not Verdict.ALLOW and not await self.postures.is_current(principal, posture):
                continue
            if decision.verdict is Verdict.DENY:
                return await self.refuse(call, posture, decision)
            if call.live.passing and call.tool.stays(call.arguments):
                return await self.refuse_unresolved_call(call.request, NOBODY_COMES_BACK)
            if decision.verdict is not Verdict.ALLOW:
                answer = await self.ask_person(call, posture, decision)
                if isinstance(answer, Problem):
                    return self.result_filter.filter_problem(answer)
                grant = answer
                continue
            # Look again: the facts, and where its paths lead, may have changed since the person was asked.
            leads = await self.find_destinations(call, posture, decision) if grant is not None else NO_LEADS
            if isinstance(leads, Problem):
                return await self.refuse_unapproved_call(call, posture, leads)
            begun = await self.begin_call(call, posture, decision, grant, leads)
            match begun:
                case int():
                    ending = await self.act(call, posture, decision, begun, leads)
                    return append_note(ending, grant.note) if grant is not None and grant.note else ending
                case ApprovalLapsed():
                    return await self.refuse_unapproved_call(
                        call, posture, build_lapsed_approval_problem(call.tool, begun.why)
                    )
                case PostureMoved():
                    # The posture has changed; a decision under the old one does not count.
                    await self.postures.reread(principal)
                case RunPaused():
                    await self.runs.holds.refresh()

    async def bring_up_to_date(self, call: ResolvedCall) -> ResolvedCall:
        """Apply the current rules, and look again at the folder that the call takes as a whole, if it takes one."""
        if self.current_policy.stale:
            await self.current_policy.renew()
        policy = self.current_policy.policy
        if policy is not call.policy:
            # New rules may be about places, and this call may not have been the one that took them over.
            call = self.resolver.follow_links(replace(call, tool=policy.tools.get(call.tool.name, call.tool)), policy)
        return await self.resolver.look_through_tree(call) if call.tool.tree else call

    async def begin_call(
        self, call: ResolvedCall, posture: Posture, decision: Decision, grant: ApprovalGrant | None, leads: Arguments
    ) -> Begun:
        """Record the call, after taking its place in the budget: parallel calls see it before anything is awaited."""
        call.live.common.spending.count_call(call.tool)
        begun: Begun | None = None
        try:
            begun = await self.recorder.record_intent(call, posture, decision, grant, leads)
            return begun
        finally:
            if not isinstance(begun, int):
                call.live.common.spending.uncount_call(call.tool)

    async def decide(
        self, call: ResolvedCall, posture: Posture, approved: bool = False, mode: Mode | None = None
    ) -> Decision:
        """`mode` is one to enter first: decide as if the session were there already."""
        live = call.live
        if self.runs.holds.known != {} or live.session.held is not None:
            await self.runs.refresh_hold(live)
        in_phase = await self.phases.count_phase_calls(live, live.session.phase) if live.session.phase else 0
        spent = live.common.spending.get_budget_use(in_phase)
        within = call.request.within.tool if call.request.within else None
        judged = Call(call.tool.name, call.arguments, approved, spent, within, call.led, call.beneath)
        policy, session = self.current_policy.policy, replace(live.session, mode=mode.name) if mode else live.session
        # The tool of another server may have disappeared since.
        tool = policy.tools.get(call.tool.name)
        decision = decide(tool, judged, session, posture, policy)
        if not mode and (demand := decision.demand_to_ease):
            eased = await self.recorder.ease_demand(demand, call.request.principal)
            decision = decide(tool, replace(judged, demand=eased), session, posture, policy)
            if decision.verdict is not Verdict.ASK:
                return decision
        if mode or tool is None or tool.demand_there is tool.demand_known is None:
            return decision
        case, failed = DecisionCase(tool, judged, session, posture, policy), partial(self.failed, tool.name)
        return await decide_there(case, decision, lambda found: self._build_context(call, posture, found, 0), failed)

    async def enter_carried_mode(self, call: ResolvedCall, carrier: Tool) -> ResolvedCall | Ending:
        """Enter the carrier's mode, if it names one, unless the carrier itself is forbidden."""
        posture = await self.postures.get_current(call.request.principal)
        carrying = Call(carrier.name, call.request.arguments)
        decision = decide(carrier, carrying, call.live.session, posture, self.current_policy.policy)
        refused, mode = replace(call, tool=carrier), self.resolver.find_wished_mode(call)
        if decision.verdict is not Verdict.DENY and isinstance(mode, Mode):
            refused, decision = call, await self.decide_in_mode(call, posture, mode)
        if decision.verdict is Verdict.DENY:
            if not await self.postures.is_current(call.request.principal, posture):
                return await self.enter_carried_mode(call, carrier)
            return await self.refuse(refused, posture, decision)
        entered = await self.resolver.enter_mode(call, mode) if isinstance(mode, Mode) else mode or call
        return await self.refuse_unresolved_call(call.request, entered) if isinstance(entered, Problem) else entered

    async def decide_in_mode(self, call: ResolvedCall, posture: Posture, mode: Mode) -> Decision:
        """Decide a carried call as if its mode were entered already: a call that will be refused must not move
        anything."""
        call = await self.bring_up_to_date(call)
        decision = await self.decide(call, posture, mode=mode)
        return explain_mode_not_entered(call.tool, mode, decision, self.current_policy.policy)

    async def refuse_unresolved_call(self, request: CallRequest, problem: Problem) -> Ending:
        posture = await self.postures.get_current(request.principal)
        await self.recorder.record_unresolved_call(request, posture, problem)
        return self.result_filter.filter_problem(problem)

    async def refuse(self, call: ResolvedCall, posture: Posture, decision: Decision) -> Ending:
        await self.recorder.record_refusal(call, posture, decision)
        if decision.code is Code.BUDGET_SPENT:
            await self.runs.pause_overspent_run(call.live, decision.reason)
        policy = self.current_policy.policy
        problem = advise_other_mode(call, advise_thinking_with_handle(call, build_refusal_problem(decision)), policy)
        return self.result_filter.filter_problem(advise_other_tools(call, problem, decision.instead, policy))

    async def ask_person(self, call: ResolvedCall, posture: Posture, decision: Decision) -> ApprovalGrant | Problem:
        """Return the person's approval, or why there is none. Raises if the question ends the call."""
        leads = await self.rehearse(call, posture, decision) or await self.find_destinations(call, posture, decision)
        if isinstance(leads, Problem):
            leads = advise_reading_first(call, leads, self.current_policy.policy)
            await self.refuse_unapproved_call(call, posture, leads)
            return leads
        wanted, judged = self.recorder.prepare_question(call, posture, decision, leads)
        seen = await to_thread.run_sync(self.recorder.binding.look_around, call, decision, leads.get(STANDS, NO_LEADS))
        with mark_asking():
            answer = await self.approvals.ask(call, wanted, decision, judged, {**leads, **seen})
        if isinstance(answer, Problem) and "approval" not in (answer.data or {}):
            await self.refuse_unapproved_call(call, posture, answer)
        return answer

    async def rehearse(self, call: ResolvedCall, posture: Posture, decision: Decision) -> Problem | None:
        """Try a call that works on files alone: nobody is asked about one that would fail."""
        if not call.tool.rehearsed:
            return None
        context = replace(self._build_context(call, posture, decision, 0), rehearsal=True)
        return await rehearse_call(call.tool, context, call.arguments)

    async def find_destinations(self, call: ResolvedCall, posture: Posture, decision: Decision) -> Arguments | Problem:
        """Look up what else decides what this call does: the tool's own facts, through ports that may only read, and
        what its paths lead to."""
        facts: Arguments | Problem = NO_LEADS
        if call.tool.stands_on is not None:
            reading = self._build_context(call, posture, limit_to_reading(call.tool, decision), 0)
            facts = await look_up_facts(call.tool, reading, call.arguments, partial(self.failed, call.tool.name))
        if isinstance(facts, Problem):
            return facts
        return await self.recorder.find_leads(call, decision, facts)

    async def refuse_unapproved_call(self, call: ResolvedCall, posture: Posture, problem: Problem) -> Ending:
        """Record that a call needed an approval and has none."""
        decision = Decision(Verdict.DENY, Layer.CONFIRMATION, problem.code, problem.message)
        await self.recorder.record_refusal(call, posture, decision)
        return self.result_filter.filter_problem(problem)

    async def act(
        self, call: ResolvedCall, posture: Posture, decision: Decision, record: int, leads: Arguments
    ) -> Ending:
        effect = decision.demand.effect if decision.demand else call.tool.effect
        context = self._build_context(call, posture, decision, record)
        if leads:
            held = collect_approved(leads)
            context = replace(context, stands=held.stands, targets=held.targets, pinned=held.pinned)
        underway = CallRecord(record, call.live.session.run, time.perf_counter_ns(), effect, context.list_hosts)
        spending = call.live.common.spending
        if spending.begun_ns is None:
            spending.start_clock()
        mark_acting(effect not in READING)
        try:
            # Cancelled while its row was written: the row stays, the tool does not run.
            await anyio.lowlevel.checkpoint_if_cancelled()
            changed = await self.recorder.find_change(call, context.demand) if context.demand.steps else None
            ending = changed or await self._run_tool(call, context)
            if isinstance(ending, Problem):
                ending = advise_reading_first(call, ending, self.current_policy.policy)
            result = await self.result_filter.filter_ending(ending, call.tool, call.request.transport)
        except (Interruption, anyio.get_cancelled_exc_class()) as stop:
            call.live.common.spending.uncount_call(call.tool)
            status = stop.recorded_as if isinstance(stop, Interruption) else "cancelled"
            self.recorder.record_outcome(call, underway, status)
            raise
        session_before = None
        if not call.tool.meta:
            self.spend(call, result)
            if posture.reasoning:
                session_before = await self.runs.advance_stage(call.live, effect not in READING, has_failed(result))
        how = "problem" if has_failed(result) or isinstance(result, Question) else "done"
        self.recorder.record_outcome(call, underway, how, result, len(ending.text))
        if session_before is not None or context.opened_desk is not None:
            await announce_move(call, context.opened_desk, session_before)
        if self.run_memory.count_call(underway.run, underway.intent, call.size + len(result.text)):
            await self.run_memory.update_summary(underway.run, call.request.client)
        return result

    def spend(self, call: ResolvedCall, result: Ending) -> None:
        call.live.common.spending.add_result(result, f"{call.tool.name} {call.digest}")
        if not call.live.passing:
            call.live.session = replace(call.live.session, steps=call.live.session.steps + 1)

    async def _run_tool(self, call: ResolvedCall, context: ToolContext) -> Ending:
        """Run the tool. Returns its own ending, or a problem in place of whatever it raised."""
        tool, seconds = call.tool, call.tool.timeout
        try:
            with anyio.move_on_after(seconds):
                arguments = normalize_arguments(tool.arguments, call.arguments)
                if not call.live.session.phase:
                    return check_ending(await tool.run(context, arguments))
                return await self._run_in_phase(call, context, arguments)
            return Problem(
                Code.TIMEOUT,
                f"`{tool.name}` did not finish within {seconds:g} s and was stopped.",
                "Try a smaller request.",
            )
        except Refusal as refused:
            return refused.problem
        except Interruption:
            raise
        except (Exception, SystemExit) as fault:
            # A pack is somebody else's code: whatever it raises or returns ends this call and no other.
            self.failed(tool.name, fault)
            return Problem(
                Code.INTERNAL,
                f"`{tool.name}` failed inside menugate; the details are in menugate's log.",
                "Try another way.",
            )
        finally:
            await context.close()

    async def _run_in_phase(self, call: ResolvedCall, context: ToolContext, arguments: Arguments) -> Ending:
        await self.phases.count_call(call, context.demand)
        ending = check_ending(await call.tool.run(context, arguments))
        await self.phases.record_proof(call, ending)
        return ending

    def _build_context(self, call: ResolvedCall, posture: Posture, decision: Decision, record: int) -> ToolContext:
        policy = self.current_policy.policy
        profile = posture.cap_profile(policy.ceiling).profile
        demand = decision.demand or Demand(call.tool.effect, call.tool.profile)
        run_nested = partial(self.run_nested_call, call, record)
        open_desk = partial(self.navigators.open, call.request, call.live, call.handle is not None)
        waiver = decision.rule if decision.verdict is Verdict.ALLOW else None
        return ToolContext(
            self.ports, call, profile, run_nested, open_desk, policy, call.live.session, demand, waiver=waiver
        )

    async def run_nested_call(self, call: ResolvedCall, record: int, tool: str, arguments: Arguments) -> Ending:
        """Run a call that a tool makes for its own answer. It is a call like any other."""
        nested = build_nested_call(call, record, tool, arguments, self.current_policy.policy)
        return nested if isinstance(nested, Problem) else await self.run(nested)
