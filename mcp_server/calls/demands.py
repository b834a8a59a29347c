"""What does a call need where it would run? Decides again about a call whose tool looks there first."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from mcp_server.calls.approval_binding import LookUpDemand, look_up_demand
from mcp_server.model.context import Context
from mcp_server.model.policy import Decision, Layer, Verdict
from mcp_server.model.results import Problem
from mcp_server.model.tools import Demand, Effect, Tool
from mcp_server.policy.decision import DecisionCase, decide

BuildContext: TypeAlias = Callable[[Decision], Context]
Failed: TypeAlias = Callable[[BaseException], None]


async def decide_there(case: DecisionCase, decision: Decision, build: BuildContext, failed: Failed) -> Decision:
    """Before the user is asked, let the tool look at the workspace; before a call runs in what earlier calls have left,
    let it look there."""
    tool = case.tool
    if decision.verdict is Verdict.ASK and tool.demand_known is not None:
        known = await _look_up(case, build(limit_to_reading(tool, decision)), tool.demand_known, failed)
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


def limit_to_reading(tool: Tool, decision: Decision) -> Decision:
    """Return the decision as a tool gets it that only looks."""
    demand = decision.demand or Demand(tool.effect, tool.profile)
    return replace(decision, demand=replace(demand, effect=Effect.READ_LOCAL))


def _decide(case: DecisionCase) -> Decision:
    return decide(case.tool_or_none, case.call, case.session, case.posture, case.policy)


async def _look_up(case: DecisionCase, context: Context, look: LookUpDemand, failed: Failed) -> Demand | Problem | None:
    return await look_up_demand(case.tool, look, context, case.call.arguments or {}, failed)
