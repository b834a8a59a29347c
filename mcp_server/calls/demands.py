"""What does a call need where it would run? Decides again about a call whose tool looks there first."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from mcp_server.calls.approval_binding import LookUpDemand, look_up_demand
from mcp_server.calls.context import ToolContext
from mcp_server.model.policy import Decision, Layer, Verdict
from mcp_server.model.results import Problem
from mcp_server.model.tools import Demand, Effect
from mcp_server.policy.decision import DecisionCase, decide

BuildContext: TypeAlias = Callable[[Decision], ToolContext]
Failed: TypeAlias = Callable[[BaseException], None]


async def decide_there(case: DecisionCase, decision: Decision, build: BuildContext, failed: Failed) -> Decision:
    """Before the user is asked, let the tool look at the workspace; before a call runs in what earlier calls have left,
    let it look there."""
    tool = case.tool
    if decision.verdict is Verdict.ASK and tool.demand_known is not None:
        context = build(decision)
        reading = replace(context, demand=replace(context.demand, effect=Effect.READ_LOCAL))
        known = await _look_up(case, reading, tool.demand_known, failed)
        if not isinstance(known, Demand):  # what could not be looked up spares nobody a question
            return decision
        case = replace(case, call=replace(case.call, demand=known))
        decision = _decide(case)
    if decision.verdict is not Verdict.ALLOW or not tool.looks_there(case.call.arguments or {}):
        return decision
    assert tool.demand_there is not None, "only such a tool looks there"
    there = await _look_up(case, build(decision), tool.demand_there, failed)
    if isinstance(there, Problem):
        return Decision(Verdict.DENY, Layer.CONFIRMATION, there.code, there.message, there.way_out)
    return _decide(replace(case, call=replace(case.call, demand=there)))


def _decide(case: DecisionCase) -> Decision:
    return decide(case.tool_or_none, case.call, case.session, case.posture, case.policy)


async def _look_up(
    case: DecisionCase, context: ToolContext, look: LookUpDemand, failed: Failed
) -> Demand | Problem | None:
    return await look_up_demand(case.tool, look, context, case.call.arguments or {}, failed)
