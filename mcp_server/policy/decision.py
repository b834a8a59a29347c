"""May this tool run, and is it to be seen at all?

One function answers both, so that what is hidden is refused and what is refused is hidden. Every layer only narrows;
the first refusal, in the order of LAYERS, is the one reported.

- A tool's own stages, effect and profile are its floor: where they do not fit it is hidden, and refused whatever the
  arguments. Its demand for these arguments is judged beside them in the same layers, and is asked for only once the
  arguments are known to fit. A tool of which some calls only read therefore declares the reading effect as its own.
- Rules: block > deny > ask > allow. An allow rule answers beforehand what menugate asks by default: before a write in
  work mode chat, and a demand's question that says it is waivable (which a profile may answer too, where the demand
  names one). It lifts nothing else: no block, deny or ask rule, no mode, stage or profile, nothing that destroys or
  changes production, and not the person's `manual`.
- Whatever cannot be judged, because a rule, a schema or a demand fails, is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from mcp_server.model.menus import META_TOOLS
from mcp_server.model.policy import Call, Decision, Layer, Policy, Rule, RuleKind, SandboxState, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, RunControl, WorkMode
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.model.tools import ASKING, READING, Arguments, Confirmation, Demand, Effect, RuleSubject, Tool
from mcp_server.policy import phases, refusals
from mcp_server.policy.own_commands import find_acting_command
from mcp_server.policy.rule_match import find_call_words
from mcp_server.policy.stages import build_stage_policy, get_current_stage

OWN = frozenset({Effect.NONE, Effect.SESSION})
"""Effects inside menugate alone, which nobody is asked about."""
MAY_GO_UNASKED = frozenset({Confirmation.NEVER, Confirmation.BY_ARGUMENTS})


@dataclass(frozen=True)
class DecisionCase:
    """One question put to the layers, and what several of them need to know, found out once and only if asked."""

    found: Tool | None
    call: Call
    session: Session
    posture: Posture
    policy: Policy

    @property
    def tool(self) -> Tool:
        assert self.found is not None, "the find layer answers first"
        return self.found

    @property
    def is_visibility_check(self) -> bool:
        """No call yet: the question is whether the tool is to be seen."""
        return self.call.arguments is None

    @cached_property
    def argument_fault(self) -> str | None:
        """What is wrong with the arguments."""
        if self.call.arguments is None:
            return None
        try:
            return self.policy.unfit(self.tool.name, self.call.arguments)
        except Exception:  # a schema may be a third party's: what cannot be checked does not run
            return "they could not be checked."

    @cached_property
    def demand(self) -> Demand | None:
        """What the call would do; None while nobody can say: no arguments, unfit ones, or a demand that fails."""
        if self.call.arguments is None or self.argument_fault is not None:
            return None
        try:
            demand = self.tool.get_demand(self.call.arguments)
            sound = isinstance(demand.effect, Effect) and isinstance(demand.profile, Profile)  # pyright: ignore[reportUnnecessaryIsInstance]  # a pack may be anybody's
            return demand if sound else None
        except Exception:  # same here: the arguments layer refuses it
            return None

    @property
    def effects(self) -> tuple[Effect, ...]:
        return (self.tool.effect, self.demand.effect) if self.demand else (self.tool.effect,)

    @property
    def readings(self) -> tuple[Arguments, ...]:
        """The arguments as they were written and, where links make that something else, as what they mean."""
        return tuple(one for one in (self.call.arguments, self.call.led) if one is not None)

    @cached_property
    def rule_words(self) -> frozenset[str] | None:
        """What rules about this call are found by; None where every rule has to be asked."""
        if self.call.arguments is None:
            return None
        try:
            found = [find_call_words(self.tool, one, self.policy.read_line) for one in self.readings]
        except Exception:  # arguments of a kind nobody thought of
            return None
        return None if None in found else frozenset[str]().union(*(one for one in found if one is not None))

    @property
    def person_only_command(self) -> str | None:
        """The command of menugate's own by which this line would answer or choose in the person's place."""
        argument, kind = self.tool.subject or ("", None)
        line = (self.call.arguments or {}).get(argument)
        if kind is not RuleSubject.COMMAND or not isinstance(line, str):
            return None
        return find_acting_command(line, self.policy.read_line)

    def find_rule(self, kind: RuleKind) -> Rule | None:
        """The rule of that list that speaks about this call."""
        if not self.policy.rules.get_shelf(self.tool.name, kind):
            return None
        could = self.policy.rules.find_for_call(self.tool.name, kind, self.rule_words)
        return next((rule for rule in could if self._is_rule_applicable(rule)), None)

    def _is_rule_applicable(self, rule: Rule) -> bool:
        if rule.applies is None:
            return True
        if self.call.arguments is None:
            return False
        try:
            spoken = [rule.applies(self.tool, one) for one in self.readings]
            return all(spoken) if rule.kind is RuleKind.ALLOW else any(spoken)
        except Exception:  # a rule that cannot be judged narrows
            return rule.kind is not RuleKind.ALLOW


def check_tool_exists(case: DecisionCase) -> Decision | None:
    return refusals.refuse_unknown_tool(case.call.tool, case.policy) if case.found is None else None


def check_blocklist(case: DecisionCase) -> Decision | None:
    if command := case.person_only_command:
        return refusals.refuse_person_command(case.tool, command)
    return refuse_by_rules(case, RuleKind.BLOCK)


def refuse_by_rules(case: DecisionCase, kind: RuleKind) -> Decision | None:
    """By a rule of that list about the call, or about something in the tree that it takes whole."""
    if rule := case.find_rule(kind):
        return refusals.refuse_by_rule(case.tool, rule)
    return refusals.refuse_path_beneath(case.tool, case.call, kind) if case.call.beneath else None


def check_mode(case: DecisionCase) -> Decision | None:
    here = case.policy.menus.get(case.session.mode)
    if case.tool.meta or (here and case.tool.name in here.tools):
        return None
    if (case.session.flat or case.call.within) and case.policy.menus.find_modes_with(case.tool.name):
        return None
    return refusals.refuse_wrong_mode(case.tool, case.session, case.policy)


def check_stage(case: DecisionCase) -> Decision | None:
    """Does the run's stage, and then the kind of work the person chose, include what this does?"""
    if case.tool.meta:
        return None
    now, chosen, table = get_current_stage(case.session, case.posture), case.posture, case.policy.stages
    fits = build_stage_policy(now, AiMode.AGENT, chosen.reasoning, table).effects
    if (now is not None and now not in case.tool.stages) or not fits.issuperset(case.effects):
        return refusals.refuse_wrong_stage(case.tool, now)
    work = READING if chosen.ai_mode is AiMode.CHAT else case.policy.work_modes.get(chosen.work_mode, READING)
    return None if work.issuperset(case.effects) else refusals.refuse_read_only_work(case.tool, chosen)


def check_phase(case: DecisionCase) -> Decision | None:
    """Does the phase that the run chose include this?"""
    now, tool, within = case.session.phase, case.tool, case.call.within
    if now is None or phases.is_tool_in_phase(now, tool.name):
        return None
    if not phases.is_phase_narrowing(case.session, tool, case.policy.menus, within):
        return None
    # What a tool does on the way to its answer is narrowed as well, unless it only looks.
    looks = within is not None and case.demand is not None and READING.issuperset(case.effects)
    return None if looks else refusals.refuse_wrong_phase(tool, now)


def check_profile(case: DecisionCase) -> Decision | None:
    given = case.posture.cap_profile(case.policy.ceiling).profile
    shelter = case.policy.shelter() if case.tool.shut_in else SandboxState.THERE
    if shelter is SandboxState.REFUSED:
        return refusals.refuse_without_sandbox(case.tool)
    asked = [(case.tool.profile, False)] + ([(case.demand.profile, True)] if case.demand else [])
    for least, these_arguments in asked:
        needed = least if shelter is SandboxState.THERE else least.next_higher
        if not given.covers(needed):
            low = refusals.refuse_low_profile(
                case.tool, needed, case.posture, case.policy, these_arguments=these_arguments
            )
            return low if needed is least else refusals.explain_missing_sandbox(low)
    demand = case.demand
    if demand and demand.takes and demand.asked_below and not given.covers(demand.asked_below):
        return refusals.refuse_useless_question(case.tool, demand, case.session, case.posture, case.policy)
    return None


def check_deny_rules(case: DecisionCase) -> Decision | None:
    return refuse_by_rules(case, RuleKind.DENY)


def check_arguments(case: DecisionCase) -> Decision | None:
    if case.argument_fault is not None:
        return refusals.refuse_unfit_arguments(case.tool, case.argument_fault)
    return refusals.refuse_unclear_demand(case.tool) if case.demand is None and not case.is_visibility_check else None


def check_budget(case: DecisionCase) -> Decision | None:
    if case.tool.meta:
        return None
    held = find_hold(case.session, case.posture)
    if held is not None:
        return refusals.refuse_paused_run(held)
    if case.is_visibility_check:
        return None
    allowed, spent = case.policy.budget, case.call.spent
    for limit, used, what in (
        (allowed.calls, spent.calls, "calls"),
        (allowed.minutes, spent.minutes, "minutes"),
        (allowed.result_bytes, spent.result_bytes, "bytes of results"),
        (allowed.repeated_failures, spent.repeated_failures, "repetitions of a call that fails"),
    ):
        if limit is not None and used >= limit:
            return refusals.refuse_spent_budget(f"{limit:,} {what}")
    if case.session.phase is None:
        return None
    step = phases.find_counted_step(case.session, case.tool, case.policy.menus, case.call.within)
    return refusals.refuse_spent_phase(step) if step and spent.in_phase >= step.budget else None


def find_hold(session: Session, posture: Posture) -> Hold | None:
    """What pauses this session's run now. A unit pauses `assisted` alone, and a spent budget its own run."""
    held = session.held
    if held is None or (held.by is Holder.UNIT and posture.run_control is not RunControl.ASSISTED):
        return None
    return held if held.run in ("", session.run) else None


def check_confirmation(case: DecisionCase) -> Decision | None:
    if case.is_visibility_check or case.call.approved:
        return None
    if case.demand is None:
        return refusals.refuse_unclear_demand(case.tool)
    rule = case.find_rule(RuleKind.ASK)
    reasons = ([refusals.describe_ask_rule(rule)] if rule else []) + list_firm_reasons(case, case.demand)
    if case.call.beneath:
        reasons = refusals.describe_asks_beneath(case.call) + reasons
    if not case.find_rule(RuleKind.ALLOW):
        reasons += list_waivable_reasons(case, case.demand)
    return refusals.make_ask_decision(case.tool, reasons, rule, case.demand) if reasons else None


def list_firm_reasons(case: DecisionCase, demand: Demand) -> list[str]:
    """Why the person is asked whatever the rules allow."""
    reasons: list[str] = []
    always = demand.effect in ASKING or case.tool.confirmation not in MAY_GO_UNASKED
    if demand.confirm and (always or not demand.waivable):
        reasons.append(demand.confirm)
    elif always:
        reasons.append(refusals.DOES.get(demand.effect, refusals.ALWAYS_ASKS))
    if case.posture.run_control is RunControl.MANUAL and demand.effect not in OWN:
        reasons.append("run control is `manual`, which asks before every effect")
    return reasons


def list_waivable_reasons(case: DecisionCase, demand: Demand) -> list[str]:
    """Why the person is asked unless an allow rule has answered already."""
    reasons: list[str] = []
    given = case.posture.cap_profile(case.policy.ceiling).profile
    settled = demand.asked_below is not None and given.covers(demand.asked_below)
    always = demand.effect in ASKING or case.tool.confirmation not in MAY_GO_UNASKED
    if demand.confirm and demand.waivable and not always and not settled:
        reasons.append(demand.confirm)
    if case.posture.work_mode is WorkMode.CHAT and demand.effect not in READING:
        reasons.append("work mode `chat` asks before anything is changed")
    return reasons


def find_sparing_rule(case: DecisionCase) -> Rule | None:
    """The allow rule that spared the person a question, for the record."""
    if case.demand is None or case.call.approved or not list_waivable_reasons(case, case.demand):
        return None
    return case.find_rule(RuleKind.ALLOW)


Check: TypeAlias = Callable[[DecisionCase], Decision | None]
CHECKS: Mapping[Layer, tuple[Check, ...]] = {
    Layer.FIND: (check_tool_exists,),
    Layer.BLOCK: (check_blocklist,),
    Layer.MODE: (check_mode,),
    Layer.STAGE: (check_stage, check_phase),
    Layer.PROFILE: (check_profile,),
    Layer.RULES: (check_deny_rules,),
    Layer.ARGUMENTS: (check_arguments,),
    Layer.BUDGET: (check_budget,),
    Layer.CONFIRMATION: (check_confirmation,),
}
LAYERS: tuple[Check, ...] = tuple(check for layer in Layer for check in CHECKS[layer])


def decide(tool: Tool | None, call: Call, session: Session, posture: Posture, policy: Policy) -> Decision:
    case = DecisionCase(tool, call, session, posture, policy)
    for layer in LAYERS:
        if answer := layer(case):
            return answer
    waiver = find_sparing_rule(case)
    return Decision(Verdict.ALLOW, rule=waiver.text if waiver else None, demand=case.demand)


# Which tools does a session see? Those that the decision, asked without arguments, does not refuse.

ANYWHERE = Session(id="", principal="", flat=True)
"""Nobody in particular, who stands in every mode at once."""


def list_visible_tools(session: Session, posture: Posture, policy: Policy) -> tuple[str, ...]:
    """The meta-tools first, then those of the session's mode (of every mode, where all are shown), in menu order."""
    mode = policy.menus.get(session.mode)
    modes = policy.menus if session.flat else (mode,) if mode else ()
    names = dict.fromkeys((*META_TOOLS, *(tool for mode in modes for tool in mode.tools)))
    return tuple(name for name in names if _is_visible(name, session, posture, policy))


def list_allowed_tools(posture: Posture, policy: Policy) -> tuple[str, ...]:
    """Every tool that the posture allows in some mode, in menu order, for hosts that search tools by themselves."""
    return list_visible_tools(ANYWHERE, posture, policy)


def _is_visible(name: str, session: Session, posture: Posture, policy: Policy) -> bool:
    return decide(policy.tools.get(name), Call(name), session, posture, policy).verdict is not Verdict.DENY
