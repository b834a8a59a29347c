"""Did the person approve this call? The client asks if it may answer for them; otherwise they answer at a terminal.

Every question is written down before it goes out, and the transaction that records the call it lets through also counts
the use of the approval. Whatever goes wrong on the way is not an approval. It is not a refusal either: the question
stays open for the person.
"""

import secrets
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls import approval_form, approval_text
from mcp_server.calls.approval_details import build_details
from mcp_server.calls.approval_form import MOST_TRIES, FormAnswer, FormReply, count_tries
from mcp_server.calls.approval_text import AGAIN
from mcp_server.calls.request import ResolvedCall
from mcp_server.calls.withdrawal import withdraw_when_answered
from mcp_server.config.operator import OperatorConfig
from mcp_server.guards.redaction import Redactor
from mcp_server.model.approvals import AnsweredBy, Approval, ApprovalAnswer, ApprovalMoment, ApprovalScope, ApprovedCall
from mcp_server.model.approvals import ApprovalChannel as Asking
from mcp_server.model.policy import Decision
from mcp_server.model.results import Problem
from mcp_server.model.tools import Arguments, Demand
from mcp_server.state import approval_questions, approvals
from mcp_server.state.approval_questions import STOPPED
from mcp_server.state.engine.rows import Clock, QuestionRow
from mcp_server.state.engine.transaction import View
from mcp_server.state.store import Store

KEY = "approval-"
"""Prefix of a question's name when a client carries it back and forth."""


class ApprovalGrant(Struct, frozen=True):
    """What lets one call through."""

    approval: Approval
    carried: bool = False
    """The client brought the question back, or kept the call open while it asked."""
    note: str = ""
    """What the model is told besides the result: the answer it brings came too late."""


class AnswerTrust(Struct, frozen=True):
    """Whose answers the operator accepts."""

    anybody: bool = True
    """False if no client may answer for the person."""
    except_for: frozenset[str] = frozenset()
    """The effects and tools for which no client may answer, even if clients may for others."""

    def may_client_answer(self, tool: str, demand: Demand) -> bool:
        return self.anybody and tool not in self.except_for and str(demand.effect) not in self.except_for


def build_answer_trust(config: OperatorConfig) -> AnswerTrust:
    return AnswerTrust(config.approvals is Asking.ELICIT, config.out_of_band)


def new_id() -> str:
    """Short enough to type, and hard enough that nobody guesses it while the question is open."""
    return "".join(secrets.choice("23456789abcdefghjkmnpqrstuvwxyz") for _ in range(8))


class Approvals(Struct, frozen=True):
    store: Store
    clock: Clock
    redactor: Redactor
    trust: AnswerTrust
    seconds: float

    async def ask(
        self, call: ResolvedCall, wanted: ApprovedCall, decision: Decision, judged: QuestionRow, leads: Arguments
    ) -> ApprovalGrant | Problem:
        """Return an approval for this call, or why there is none. Raises if the question ends this call."""
        carried = await self._find_carried_question(call, wanted) if call.request.client.carried else None
        if carried is not None and not (carried.covers(wanted, carried=True) and carried.answer is ApprovalAnswer.OPEN):
            return self._redeem_answer(call, wanted, carried, note=await self._build_late_answer_note(call, carried))
        by_client, again = self._may_client_answer(call, decision), ""
        if carried is None:
            known = await self.store.read(
                partial(approvals.find_standing_approval, call=wanted, now=self.clock.now_ns())
            )
            if (
                known is not None
                and known.answer is not ApprovalAnswer.OPEN
                and self._is_answer_valid(known, by_client)
            ):
                return self._redeem_answer(call, wanted, known, carried=False)
            if wanted.moment != ApprovalMoment():
                query = partial(approvals.find_outdating_change, call=wanted, now=self.clock.now_ns())
                again = await self.store.read(query)
            leads = {**leads, AGAIN: again} if again else leads
            whole = approval_text.format_question(call.tool, call.arguments, decision, self.redactor, leads)
            if len(whole) > approval_text.MOST_READ:
                return approval_text.build_unreadable_question_problem(call.tool, len(whole))
            brief = approval_text.format_question(call.tool, call.arguments, decision, self.redactor, leads, brief=True)
            details = build_details(call, decision, self.redactor, leads)
            carried = await self._open_question(wanted, whole, brief, details, judged)
            if carried is None:
                return approval_text.build_too_many_questions_problem(call.tool)
        if not by_client or (carried.whole and not carried.brief) or carried.tries >= MOST_TRIES:
            return approval_text.build_missing_approval_problem(decision, carried, self.seconds, again=again)
        return await self._ask_through_client(call, carried, decision)

    def _may_client_answer(self, call: ResolvedCall, decision: Decision) -> bool:
        demand = decision.demand
        trusted = demand is not None and self.trust.may_client_answer(call.tool.name, demand)
        return trusted and call.request.client.can("elicitation")

    def _is_answer_valid(self, known: Approval, by_client: bool) -> bool:
        """Accept a person's answer. Accept a client's only if it may still answer, and its refusal only that one
        time."""
        if known.way is AnsweredBy.PERSON:
            return True
        return known.answer is ApprovalAnswer.YES and by_client

    async def _find_carried_question(self, call: ResolvedCall, wanted: ApprovedCall) -> Approval | None:
        """Find the question that the client brings back, if it was about this call."""
        for key in call.request.client.carried:
            if not key.startswith(KEY):
                continue
            known = await self.store.read(partial(approval_questions.find_approval, id=key.removeprefix(KEY)))
            if known is not None and known.find_outdating_change(wanted, carried=True):
                return None
            if known is not None and known.wanted.arguments_sha256 == wanted.arguments_sha256:
                return known if known.wanted.tool == wanted.tool else None
        return None

    def _redeem_answer(
        self, call: ResolvedCall, wanted: ApprovedCall, known: Approval, carried: bool = True, note: str = ""
    ) -> ApprovalGrant | Problem:
        if known.is_redeemable(wanted, self.clock.now_ns(), carried):
            return ApprovalGrant(known, carried, note)
        if known.answer is ApprovalAnswer.NO:
            return approval_text.build_denied_approval_problem(call.tool, known)
        why = known.void or "it has expired, or the posture or the stage has changed since"
        return approval_text.build_lapsed_approval_problem(call.tool, "it was already used" if known.is_spent else why)

    async def _build_late_answer_note(self, call: ResolvedCall, known: Approval) -> str:
        """Say that the answer which the client brings back came after an approval elsewhere, if it says otherwise."""
        if known.answer is not ApprovalAnswer.YES or not call.request.client.get_note(KEY + known.id):
            return ""
        heard = await self._put_question(call, known)
        return approval_text.format_late_refusal(known) if heard.said is FormAnswer.NO else ""

    async def _open_question(
        self, wanted: ApprovedCall, whole: str, brief: str, details: Arguments, judged: QuestionRow
    ) -> Approval | None:
        now = self.clock.now_ns()
        draft = Approval(new_id(), wanted, whole, now, now + int(self.seconds * 1e9), details=details)
        if whole != brief:
            brief = f"{brief}\n{approval_text.format_brief_note(draft.id)}"
            draft = replace(draft, message=brief, whole=whole, brief=len(brief) <= approval_text.MOST_SHOWN)
        if len(draft.message) > approval_text.MOST_SHOWN:
            draft = replace(draft, message=approval_text.format_question_summary(whole, draft.id), whole=whole)
        return await self.store.write(lambda tx: approvals.record_question(tx, draft, judged))

    async def _ask_through_client(
        self, call: ResolvedCall, approval: Approval, decision: Decision
    ) -> ApprovalGrant | Problem:
        """Ask through the client. In the newer protocol era the first attempt ends the call, and the client makes it
        again with the answer."""
        heard: FormReply | None = None
        async with withdraw_when_answered(self.store, partial(self._is_settled, approval)):
            heard = await self._put_question(call, approval)
        # If the person answered at a terminal, that answer holds, and the client's form is withdrawn.
        settled = await (
            self._record_answer(approval, heard) if heard else self.store.read(self._build_approval_query(approval))
        )
        if settled is None or settled.void:
            known = settled or await self.store.read(self._build_approval_query(approval))
            why = known.void if known and known.void else "it has expired or was already used"
            return approval_text.build_lapsed_approval_problem(call.tool, why)
        if settled.answer is ApprovalAnswer.OPEN:
            return approval_text.build_missing_approval_problem(
                decision, settled, self.seconds, heard.why if heard else ""
            )
        if settled.answer is not ApprovalAnswer.YES:
            return approval_text.build_denied_approval_problem(call.tool, settled)
        return ApprovalGrant(settled, carried=True)

    async def _put_question(self, call: ResolvedCall, approval: Approval) -> FormReply:
        key, more = KEY + approval.id, approval_text.build_scope_field(approval)
        return await approval_form.ask_person(call.request.client, self.clock, key, approval.message, more)

    async def _is_settled(self, approval: Approval) -> bool:
        """True if the question was answered elsewhere, or if something made every answer void. Stopping does not count:
        it ends the call in another way, and the person is told what it ended."""
        known = await self.store.read(self._build_approval_query(approval))
        if known is None or known.void:
            return known is None or known.void != STOPPED
        return known.answer is not ApprovalAnswer.OPEN

    def _build_approval_query(self, approval: Approval) -> Callable[[View], Approval | None]:
        return partial(approval_questions.find_approval, id=approval.id)

    async def _record_answer(self, approval: Approval, heard: FormReply) -> Approval | None:
        if heard.said not in (FormAnswer.YES, FormAnswer.NO):
            tries = count_tries(heard.said)
            return await self.store.write(partial(approvals.leave_open, id=approval.id, tries=tries, why=heard.why))
        answer = ApprovalAnswer.YES if heard.said is FormAnswer.YES else ApprovalAnswer.NO
        lasting = heard.content.get("scope") == ApprovalScope.SESSION
        reply = approvals.QuestionReply(
            approval.id, answer, AnsweredBy.CLIENT, ApprovalScope.SESSION if lasting else ApprovalScope.ONCE
        )
        return await self.store.write(lambda tx: approvals.record_answer(tx, reply))
