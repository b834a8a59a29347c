"""What would a server find in the workspace before it asks about a call? For commands that judge without a server."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.approval_binding import look_up_facts
from mcp_server.calls.demands import Failed, decide_there, limit_to_reading
from mcp_server.guards.atomic import Trash
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.jail import Jail
from mcp_server.guards.path_steps import ease_demand
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.search.search import FileSearch
from mcp_server.model.context import Context
from mcp_server.model.files import Files, Stamp
from mcp_server.model.policy import Decision, Layer, Verdict
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Processes
from mcp_server.model.results import Problem
from mcp_server.model.tools import Demand
from mcp_server.policy.decision import DecisionCase, decide

NOWHERE = Path("/nonexistent")
OF_SHELLS = ("bash_id", "shell_id", "run_in_background")


class NothingRead(Struct, frozen=True):
    """There is no session that has read anything."""

    def remember(self, path: str, stamp: Stamp) -> None:
        return None

    def recall(self, path: str) -> Stamp | None:
        return None


class LookingContext(Struct, frozen=True):
    """The part of a call's context through which a tool looks at the workspace."""

    files: Files
    processes: Processes
    demand: Demand
    belongings: Collection[str] = ()


class WorkspaceLook(Struct, frozen=True):
    jail: Jail
    commands: CommandHost

    async def decide(self, case: DecisionCase, failed: Failed) -> Decision:
        """Decide; if only what is there makes the call ask, look at that."""
        decision = _decide(case)
        if demand := decision.demand_to_ease:
            decision = _decide(case, ease_demand(demand, self.jail))
        given = case.call.arguments
        tool = case.tool_or_none
        if decision.verdict is not Verdict.ASK or given is None or tool is None or tool.demand_known is None:
            return decision
        if any(given.get(name) for name in OF_SHELLS):  # only the server knows its shells
            return decision
        build = partial(self._build_context, case.posture.cap_profile(case.policy.ceiling).profile)
        decision = await decide_there(case, decision, build, failed)
        if decision.verdict is not Verdict.ASK or tool.stands_on is None:
            return decision
        facts = await look_up_facts(tool, build(limit_to_reading(tool, decision)), given, failed)
        if not isinstance(facts, Problem):
            return decision
        return Decision(Verdict.DENY, Layer.CONFIRMATION, facts.code, facts.message, facts.way_out)

    def _build_context(self, profile: Profile, decision: Decision) -> Context:
        assert decision.demand is not None, "a call that asks demands something"
        files = WorkspaceFiles(self.jail, Trash(NOWHERE), NothingRead(), FileSearch(self.jail))
        looking = LookingContext(
            files.limit_to_grant(decision.demand, at=profile),
            self.commands.build_call_processes(decision.demand, profile),
            decision.demand,
        )
        return cast(Context, looking)


def _decide(case: DecisionCase, demand: Demand | None = None) -> Decision:
    call = replace(case.call, demand=demand) if demand else case.call
    return decide(case.tool_or_none, call, case.session, case.posture, case.policy)
