"""What does the ledger record about a call? A row before it runs, one after, and one for every call that does not
run."""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.calls.approval_binding import CANONICAL, Binding
from mcp_server.calls.approval_contents import find_texts
from mcp_server.calls.approval_text import MOMENT
from mcp_server.calls.approvals import ApprovalGrant
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.request import CallRequest, ResolvedCall
from mcp_server.calls.results import build_changed_folder_problem
from mcp_server.guards.path_steps import ease_demand
from mcp_server.model.approvals import ApprovalMoment, ApprovedCall
from mcp_server.model.glances import Mask, format_glance, format_unknown_glance
from mcp_server.model.policy import Decision, Layer, Verdict
from mcp_server.model.posture import Posture, RunControl
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.sessions import Session
from mcp_server.model.shell import ReadLine
from mcp_server.model.tools import READING, Arguments, Demand, Effect, RuleSubject
from mcp_server.model.verification import find_test_outcome
from mcp_server.policy.decision import list_visible_tools
from mcp_server.policy.stages import get_current_stage
from mcp_server.state.approvals import QuestionTerms, find_last_change
from mcp_server.state.engine.rows import Begun, IntentRow, Judged, Origin, OutcomeRow, RefusalRow
from mcp_server.state.engine.rows import QuestionRow as Questioned
from mcp_server.state.store import Store

JudgedT = TypeVar("JudgedT", bound=Judged)
CHANGING_FILES = frozenset({Effect.WRITE_LOCAL, Effect.DESTROY_LOCAL})
MOST_COUNTED = 1000
LONGEST_NAME = 80
"""Characters kept of a tool name that nobody registered, which is the caller's text."""
LONGEST_TEXT = 10 * LONGEST_NAME
"""Characters of it that are searched for secrets: the cut comes after, so that no half of a secret stays
unrecognised."""
QUOTED = re.compile(r"`[^`]*`")


class CallRecord(Struct, frozen=True):
    """A running call: its row, the run it belongs to, when it started, and the effect it was granted."""

    intent: int
    run: str
    at_ns: int
    effect: Effect
    list_hosts: Callable[[], Iterable[str]] = tuple
    """Lists the hosts that the call has turned to so far."""


class LedgerRecorder(Struct, frozen=True):
    store: Store
    tool_count: Callable[[Session, Posture], int]
    """How many tools the session saw when it called."""
    conversation: str
    redact: Callable[[str], str]
    """Takes secrets out of what is kept beside the ledger."""
    notice: Callable[[Judged], None] | None
    """Hears of every decision if telemetry is on."""
    binding: Binding
    """Knows what an approval is bound to."""
    read_line: ReadLine
    """Parses a shell line, to tell whether it ran tests."""
    mask: Mask
    """Takes secrets out of the line that is kept for a person to look back at."""
    current_policy: CurrentPolicy
    """Says whether such lines are kept."""
    list_beside: Callable[[str], tuple[str, ...]] = lambda _principal: ()
    """Lists what runs in the workspace besides the current call and may change something."""
    _client_names: dict[str, str] = field(default_factory=dict[str, str])
    """What each client calls itself, and how that is recorded: searched for secrets once, not in every call."""

    async def find_leads(self, call: ResolvedCall, decision: Decision, facts: Arguments) -> Arguments:
        """Find what an approval of the call is bound to: if it may run files which it does not name, also the last call
        that may have changed any."""
        leads = await to_thread.run_sync(self.binding.find_destinations, call, decision, facts)
        moment: ApprovalMoment = leads.get(MOMENT, ApprovalMoment())
        if not moment.loads:
            return leads
        changed = await self.store.read(find_last_change)
        last = f"call {changed[0]} (`{changed[1]}`)" if changed else "none lately"
        beside = await to_thread.run_sync(self.list_beside, call.request.principal)
        return {**leads, MOMENT: replace(moment, changed=last, beside=beside)}

    async def ease_demand(self, demand: Demand, principal: str) -> Demand:
        """Look at what is there, if only that decides whether the call needs an approval."""
        has_patterns = any(step.does == "matches" for step in demand.steps)
        beside = await to_thread.run_sync(self.list_beside, principal) if has_patterns else ()
        return await to_thread.run_sync(ease_demand, demand, self.binding.jail, beside)

    async def find_change(self, call: ResolvedCall, granted: Demand) -> Problem | None:
        """Look again at the last moment, if nobody was asked because of what was there."""
        if granted.confirm is not None:
            return None
        eased = await self.ease_demand(call.tool.get_demand(call.arguments), call.request.principal)
        return build_changed_folder_problem(eased.confirm) if eased.confirm else None

    async def record_intent(
        self, call: ResolvedCall, posture: Posture, decision: Decision, yes: ApprovalGrant | None, leads: Arguments
    ) -> Begun:
        """Record what is about to run. The same transaction uses up the approval and counts a unit."""
        intent = self._build_row(IntentRow, call, posture, decision)
        terms = None
        if yes is not None or posture.run_control is RunControl.ASSISTED:
            terms = self._build_question_terms(call, intent, yes, leads)
        # A call cancelled meanwhile is recorded all the same, and its row would be left without an outcome.
        with anyio.CancelScope(shield=True):
            return await self.store.record_intent(intent, terms)
        raise AssertionError("a scope that is never cancelled suppresses nothing")

    async def record_refusal(self, call: ResolvedCall, posture: Posture, decision: Decision) -> None:
        await self.store.record_decision(self._build_row(RefusalRow, call, posture, decision))

    def prepare_question(
        self, call: ResolvedCall, posture: Posture, decision: Decision, leads: Arguments
    ) -> tuple[ApprovedCall, Questioned]:
        """Return what an approval must cover, and the row for the question."""
        judged = self._build_row(Questioned, call, posture, decision)
        return self.binding.build_approved_call(call, judged, leads), judged

    async def record_unresolved_call(self, request: CallRequest, posture: Posture, problem: Problem) -> None:
        digest, size = measure_arguments(request.arguments)
        decision = Decision(Verdict.DENY, Layer.FIND, problem.code, reason=problem.code.meaning)
        refused = RefusalRow(
            session=request.live.session,
            posture=posture,
            tool=self.redact(request.tool[:LONGEST_TEXT])[:LONGEST_NAME],
            decision=decision,
            origin=self._build_origin(request, request.live),
            tool_count=self.tool_count(request.live.session, posture),
            arguments_sha256=digest,
            arguments_bytes=size,
            glance=format_unknown_glance(request.tool, self.mask) if self.current_policy.keeps_glances else "",
        )
        if self.notice:
            self.notice(refused)
        await self.store.record_decision(refused)

    def record_outcome(
        self, call: ResolvedCall, underway: CallRecord, ending: str, shown: Ending | None = None, size: int = 0
    ) -> None:
        """Record how the call ended. No call waits for this: only the row before was promised."""
        text = shown.text if shown is not None else ""
        code = shown.code if isinstance(shown, Problem) else None
        notes: tuple[tuple[str, str], ...] = ()
        if isinstance(shown, Done) and (underway.effect in CHANGING_FILES or "notes" in shown.meta):
            notes = tuple(self._collect_notes(call, underway, shown))
        ran_command = call.tool.subject is not None and call.tool.subject[1] is RuleSubject.COMMAND
        self.store.record_outcome(
            OutcomeRow(
                intent=underway.intent,
                ending=ending,
                code=code or (Code.CANCELLED if ending == "cancelled" else None),
                latency_us=(time.perf_counter_ns() - underway.at_ns) // 1000,
                result_bytes=size,
                shown_bytes=len(text),
                session=call.live.session.id,
                tool=call.tool.name,
                run=underway.run,
                notes=notes,
                hosts=tuple(map(self.redact, underway.list_hosts())),
                tested=find_test_outcome(call.tool, call.arguments, shown, self.read_line) if ran_command else "",
            )
        )

    def _collect_notes(self, call: ResolvedCall, underway: CallRecord, shown: Done) -> Iterator[tuple[str, str]]:
        """Collect what a summary of the run will need and the ledger does not hold, since it holds no arguments."""
        said = shown.meta.get("notes")
        if isinstance(said, Mapping):
            yield from ((str(kind), self.redact(str(text))) for kind, text in cast(Mapping[str, Any], said).items())
        if underway.effect in CHANGING_FILES:
            paths = (call.arguments.get(name) for name in call.tool.places)
            yield from (("file", self.redact(path)) for path in paths if isinstance(path, str))

    def _build_question_terms(
        self, call: ResolvedCall, intent: IntentRow, yes: ApprovalGrant | None, leads: Arguments
    ) -> QuestionTerms | None:
        """Return what the call needs besides its record, if it was approved or may end a unit."""
        changes = intent.decision.demand is not None and intent.decision.demand.effect not in READING
        counted = intent.posture.run_control is RunControl.ASSISTED and changes and not call.tool.meta
        if yes is None and not counted:
            return None
        unit = ("" if call.live.passing else intent.session.id) if counted else None
        if yes is None:
            return QuestionTerms(unit=unit)
        wanted = self.binding.build_approved_call(call, intent, leads)
        return QuestionTerms(yes.approval.id, wanted, yes.carried, unit)

    def _build_row(self, kind: type[JudgedT], call: ResolvedCall, posture: Posture, decision: Decision) -> JudgedT:
        if decision.demand is None:
            # Refused before its arguments were looked at: record what the tool does in general.
            decision = replace(decision, demand=Demand(call.tool.effect, call.tool.profile))
        elif why := decision.demand.confirm:
            # The person is shown which file it is about; the record holds no arguments.
            told = decision.reason.replace(why.rstrip("."), mask_quoted_arguments(why.rstrip("."), call.arguments))
            decision = replace(decision, reason=self.redact(told))
        if decision.code is Code.INVALID_ARGUMENTS:
            # The message to the caller repeats argument values, and any of them may be a secret.
            decision = replace(decision, reason=decision.code.meaning)
        session = call.live.session
        stage = get_current_stage(session, posture)
        judged = kind(
            session=session if stage is session.stage else replace(session, stage=stage),
            posture=posture,
            tool=call.tool.name,
            decision=decision,
            origin=self._build_origin(call.request, call.live),
            tool_count=self.tool_count(call.live.session, posture),
            arguments_sha256=call.digest,
            arguments_bytes=call.size,
            carrier=call.carrier.name if call.carrier and call.carrier is not call.tool else None,
            glance=format_glance(call.tool, call.arguments, self.mask) if self.current_policy.keeps_glances else "",
        )
        if self.notice:
            self.notice(judged)
        return judged

    def _build_origin(self, request: CallRequest, live: LiveSession) -> Origin:
        name = request.client.name[:LONGEST_TEXT]
        client = self._client_names.get(name)
        if client is None:
            if len(self._client_names) > MOST_COUNTED:
                self._client_names.clear()
            client = self._client_names[name] = self.redact(name)[:LONGEST_NAME]
        return Origin(
            conversation=self.conversation,
            client=client,
            transport=request.transport,
            surface=request.surface,
            passing=live.passing,
            within=request.within.record if request.within else None,
        )


def measure_arguments(arguments: Arguments) -> tuple[str, int]:
    """Return what a row holds in place of the arguments: the digest of their canonical form, and its length."""
    canonical = CANONICAL.encode(arguments).encode()
    return hashlib.sha256(canonical).hexdigest(), len(canonical)


def mask_quoted_arguments(why: str, arguments: Arguments) -> str:
    """Return a question's words without what they quote of the arguments."""
    for text in sorted(find_texts(arguments), key=len, reverse=True):
        why = why.replace(f"`{text}`", "`…`")
    return QUOTED.sub("`…`", why)


def build_tool_counter(current_policy: CurrentPolicy) -> Callable[[Session, Posture], int]:
    """Count the visible tools. The number is the same for every call from the same position, so it is counted once."""
    known: dict[tuple[object, ...], int] = {}

    judged = [current_policy.policy]

    def count_shown_tools(session: Session, posture: Posture) -> int:
        policy = current_policy.policy
        if policy is not judged[0]:
            known.clear()
            judged[0] = policy
        key = (session.listing_key, session.held is None, session.pinned, session.flat, posture)
        if key not in known:
            if len(known) > MOST_COUNTED:
                known.clear()
            known[key] = len(list_visible_tools(session, posture, policy))
        return known[key]

    return count_shown_tools
