"""How far is a run in its phases? What its calls spent and proved in each, kept where a restart finds it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.documents import build_document_stores
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.request import ResolvedCall
from mcp_server.model.documents import Document, DocumentCause, Overtaken
from mcp_server.model.phases import KIND, Log
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal, Relayed
from mcp_server.model.tools import Demand
from mcp_server.policy.phases import (
    find_counted_step,
    is_test_call,
    may_change_workspace,
    record_call_start,
    record_test_end,
)
from mcp_server.policy.refusals import refuse_spent_phase
from mcp_server.state.store import Store

ATTEMPTS = 50
"""How often a count starts over because another call of the session counted first."""


class PhaseLogs(Struct, frozen=True):
    store: Store
    current_policy: CurrentPolicy

    async def count_phase_calls(self, live: LiveSession, phase: str) -> int:
        session = live.session
        kept = await build_document_stores(self.store, live, session, "").session.get(KIND, session.run)
        return Log.from_body(kept.body).spent.get(phase, 0) if kept else 0

    async def count_call(self, call: ResolvedCall, demand: Demand) -> None:
        """Count the call before it runs. Raises if parallel calls have taken the last one meanwhile."""
        if call.tool.meta:
            return
        within = _get_parent_tool(call)
        changes = may_change_workspace(call.tool, demand.effect, within)
        step = find_counted_step(call.live.session, call.tool, self.current_policy.policy.menus, within)

        def change(log: Log) -> Log:
            if step is not None and not log.count_calls_left(step):
                spent = refuse_spent_phase(step)
                raise Refusal(Problem(Code.PHASE_SPENT, spent.reason, spent.way_out))
            return record_call_start(log, step, changes)

        await self._update_log(call, change, "begun")

    async def record_proof(self, call: ResolvedCall, ending: Ending) -> None:
        """What the call has proved by running. Where that cannot be kept, nothing is proved."""
        if call.live.session.phase is None:  # the call itself may have ended the run
            return
        if not is_test_call(call.tool, call.arguments, _get_parent_tool(call), self.current_policy.policy.read_line):
            return
        code = get_ending_facts(ending).get("exit_code")
        with suppress(Refusal):
            await self._update_log(call, lambda log: record_test_end(log, code), "tests ran")

    async def _update_log(self, call: ResolvedCall, change: Callable[[Log], Log], event: str) -> None:
        session = call.live.session
        drawer = build_document_stores(self.store, call.live, session, call.tool.name).session
        kept = await drawer.get(KIND, session.run)
        for _ in range(ATTEMPTS):
            kept = kept or Document(KIND, session.run, Log().body, str(session.phase))
            log = change(Log.from_body(kept.body))
            if log.body == kept.body:
                return
            written = await drawer.put(replace(kept, body=log.body), DocumentCause(event))
            if not isinstance(written, Overtaken):
                return
            kept = written.current
        raise Refusal(Problem(Code.BUSY, "too many calls in this session are running at once; this one did not run."))


def _get_parent_tool(call: ResolvedCall) -> str | None:
    return call.request.within.tool if call.request.within else None


def get_ending_facts(ending: Ending) -> Mapping[str, Any]:
    """Return what a tool reports for programs, such as a command's exit code."""
    if isinstance(ending, Relayed):
        return ending.meta
    if isinstance(ending, Done):
        return {**(ending.data or {}), **ending.meta}
    return (ending.data or {}) if isinstance(ending, Problem) else {}
