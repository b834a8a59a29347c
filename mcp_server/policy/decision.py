"""May this tool run, and is it listed at all?

One function answers both, so every hidden tool is refused and every refused tool is hidden. A layer can only narrow;
the first refusal, in the order of LAYERS, is the one reported.

- A tool's own stages, effect and profile are its floor: if they do not fit, it is hidden, and refused whatever the
  arguments. The same layers check its demand for these arguments, which is computed only after the arguments fit the
  schema. So a tool that only reads in some calls declares a reading effect as its own.
- Rules: block > deny > ask > allow. An allow rule waives only the questions that menugate asks by default: before a
  write in work mode `chat`, and a demand's question that is waivable (a profile may waive it too, if the demand names
  one). It lifts nothing else: no block, deny or ask rule, no mode, stage or profile, no question about destroying
  something or changing production, and not run control `manual`.
- If a rule, a schema or a demand fails, the call is refused.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from mcp_server.model.menus import META_TOOLS, SERVER_TOOL
from mcp_server.model.policy import Call, Decision, Layer, Policy, Rule, RuleKind, SandboxState, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, RunControl, WorkMode
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.model.text import format_count
from mcp_server.model.tools import ASKING, READING, Arguments, Confirmation, Demand, Effect, RuleSubject, Tool
from mcp_server.policy import phases, refusals
from mcp_server.policy.own_commands import find_acting_command
from mcp_server.policy.rule_match import find_call_words
from mcp_server.policy.stages import build_stage_policy, get_current_stage

OWN = frozenset({Effect.NONE, Effect.SESSION})
"""Effects inside menugate alone, which nobody is asked about."""
MAY_GO_UNASKED = frozenset({Confirmation.NEVER, Confirmation.BY_ARGUMENTS})


class DecisionCase(Struct, frozen=True, dict=True):
    """One question to the layers. What several of them need is computed once, and only if one asks."""

    tool_or_none: Tool | None
    call: Call
    session: Session
    posture: Posture
    policy: Policy

    @property
    def tool(self) -> Tool:
        assert self.tool_or_none is not None, "the find layer answers first"
        return self.tool_or_none

    @property
    def is_visibility_check(self) -> bool:
        """True if there is no call, and the question is whether to list the tool."""
        return self.call.arguments is None

    @cached_property
    def argument_fault(self) -> str | None:
        if self.call.arguments is None:
            return None
        try:
            return self.policy.unfit(self.tool.name, self.call.arguments)
        except Exception:  # a third party's schema may fail: what cannot be checked does not run
            return "they could not be checked."

    @cached_property
    def demand(self) -> Demand | None:
        """What the call would do; None without arguments, if they do not fit, or if the tool's own code fails."""
        if self.call.arguments is None or self.argument_fault is not None:
            return None
        try:
            demand = self.call.demand or self.tool.get_demand(self.call.arguments)
            sound = isinstance(demand.effect, Effect) and isinstance(demand.profile, Profile)  # pyright: ignore[reportUnnecessaryIsInstance]  # a pack may be anybody's
            return demand if sound else None
        except Exception:  # same here: the arguments layer refuses it
            return None

    @property
    def effects(self) -> tuple[Effect, ...]:
        return (self.tool.effect, self.demand.effect) if self.demand else (self.tool.effect,)

    @property
    def readings(self) -> tuple[Arguments, ...]:
        """The arguments as written and, if links lead elsewhere, with the links resolved."""
        return tuple(one for one in (self.call.arguments, self.call.led) if one is not None)

    @cached_property
    def rule_words(self) -> frozenset[str] | None:
        """The words by which rules about this call are found; None if every rule must be tested."""
        if self.call.arguments is None:
            return None
        words = frozenset[str]()
        for reading in self.readings:
            try:
                more = find_call_words(self.tool, reading, self.policy.read_line)
            except Exception:  # arguments may be of any kind: test every rule
                return None
            if more is None:
                return None
            words |= more
        return words

    @property
    def person_only_command(self) -> str | None:
        """The menugate command by which this shell line would answer or choose for the person."""
        argument, kind = self.tool.subject or ("", None)
        line = (self.call.arguments or {}).get(argument)
        if kind is not RuleSubject.COMMAND or not isinstance(line, str):
            return None
        return find_acting_command(line, self.policy.read_line)

    def find_rule(self, kind: RuleKind) -> Rule | None:
        """Find the first rule of this kind that applies to the call."""
        if not self.policy.rules.get_shelf(self.tool.name, kind):
            return None
        candidates = self.policy.rules.find_for_call(self.tool.name, kind, self.rule_words)
        return next((rule for rule in candidates if self._is_rule_applicable(rule)), None)

    def _is_rule_applicable(self, rule: Rule) -> bool:
        if rule.applies is None:
            return True
        if self.call.arguments is None:
            return False
        try:
            answers = [rule.applies(self.tool, reading) for reading in self.readings]
            return all(answers) if rule.kind is RuleKind.ALLOW else any(answers)
        except Exception:  # a rule that fails narrows
            return rule.kind is not RuleKind.ALLOW


def check_tool_exists(case: DecisionCase) -> Decision | None:
    return refusals.refuse_unknown_tool(case.call.tool, case.policy) if case.tool_or_none is None else None


def check_blocklist(case: DecisionCase) -> Decision | None:
    if command := case.person_only_command:
        return refusals.refuse_person_command(case.tool, command)
    return refuse_by_rules(case, RuleKind.BLOCK)


def refuse_by_rules(case: DecisionCase, kind: RuleKind) -> Decision | None:
    """Refuse by a rule of this kind about the call, or about a path in the folder that it takes whole."""
    if rule := case.find_rule(kind):
        return refusals.refuse_by_rule(case.tool, rule)
    return refusals.refuse_path_beneath(case.tool, case.call, kind) if case.call.beneath else None


def check_mode(case: DecisionCase) -> Decision | None:
    mode = case.policy.menus.by_name.get(case.session.mode)
    if case.tool.meta or (mode and (case.tool.name in mode.tools or case.tool.name in mode.behind)):
        return None
    shut_in = case.session.pinned and case.call.within == SERVER_TOOL
    if (case.session.flat or (case.call.within and not shut_in)) and case.policy.menus.find_modes_with(case.tool.name):
        return None
    if case.tool.name in case.policy.menus.tools_everywhere and not case.session.pinned:
        return None
    if is_added(case.tool.name, case.session, case.policy):
        return None
    return refusals.refuse_wrong_mode(case.tool, case.session, case.policy)


def is_added(tool: str, session: Session, policy: Policy) -> bool:
    """True if the session added it to its list, and it is still in some mode."""
    return tool in session.added and not session.pinned and bool(policy.menus.find_modes_with(tool))


def check_stage(case: DecisionCase) -> Decision | None:
    """Refuse what the run's stage, or the kind of work that the person chose, does not include."""
    if case.tool.meta:
        return None
    now, chosen, table = get_current_stage(case.session, case.posture), case.posture, case.policy.stages
    fits = build_stage_policy(now, AiMode.AGENT, chosen.reasoning, table).effects
    if (now is not None and now not in case.tool.stages) or not fits.issuperset(case.effects):
        return refusals.refuse_wrong_stage(case.tool, now)
    work = READING if chosen.ai_mode is AiMode.CHAT else case.policy.work_modes.get(chosen.work_mode, READING)
    return None if work.issuperset(case.effects) else refusals.refuse_read_only_work(case.tool, chosen)


def check_phase(case: DecisionCase) -> Decision | None:
    """Refuse what the run's phase does not include."""
    now, tool, within = case.session.phase, case.tool, case.call.within
    if now is None or phases.is_tool_in_phase(now, tool.name):
        return None
    if not phases.is_phase_narrowing(case.session, tool, case.policy.menus, within):
        return None
    # The calls that a tool makes for its own answer are narrowed too, unless they only read.
    only_reads = within is not None and case.demand is not None and READING.issuperset(case.effects)
    return None if only_reads else refusals.refuse_wrong_phase(tool, now)


def check_profile(case: DecisionCase) -> Decision | None:
    profile = case.posture.cap_profile(case.policy.ceiling).profile
    sandbox = case.policy.shelter() if case.tool.shut_in else SandboxState.THERE
    if sandbox is SandboxState.REFUSED:
        return refusals.refuse_without_sandbox(case.tool)
    minimums = [(case.tool.profile, False)] + ([(case.demand.profile, True)] if case.demand else [])
    for minimum, these_arguments in minimums:
        needed = minimum if sandbox is SandboxState.THERE else minimum.next_higher
        if not profile.covers(needed):
            refusal = refusals.refuse_low_profile(
                case.tool, needed, case.posture, case.policy, these_arguments=these_arguments
            )
            return refusal if needed is minimum else refusals.explain_missing_sandbox(refusal)
    demand = case.demand
    if demand and demand.takes and demand.asked_below and not profile.covers(demand.asked_below):
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
    hold = find_hold(case.session, case.posture)
    if hold is not None:
        return refusals.refuse_paused_run(hold)
    if case.is_visibility_check:
        return None
    budget, spent = case.policy.budget, case.call.spent
    for limit, used, noun in (
        (budget.calls, spent.calls, "call"),
        (budget.minutes, spent.minutes, "minute"),
        (budget.result_bytes, spent.result_bytes, "result byte"),
        (budget.repeated_failures, spent.repeated_failures, "repeated failure"),
    ):
        if limit is not None and used >= limit:
            return refusals.refuse_spent_budget(format_count(limit, noun))
    if case.session.phase is None:
        return None
    step = phases.find_counted_step(case.session, case.tool, case.policy.menus, case.call.within)
    return refusals.refuse_spent_phase(step) if step and spent.in_phase >= step.budget else None


def find_hold(session: Session, posture: Posture) -> Hold | None:
    """Find what pauses this session's run. A unit pauses it only in `assisted`, a spent budget only its own run."""
    hold = session.held
    if hold is None or (hold.by is Holder.UNIT and posture.run_control is not RunControl.ASSISTED):
        return None
    return hold if hold.run in ("", session.run) else None


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
    """List the reasons to ask the person whatever the rules allow."""
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
    """List the reasons to ask the person that an allow rule waives."""
    reasons: list[str] = []
    profile = case.posture.cap_profile(case.policy.ceiling).profile
    waived = demand.asked_below is not None and profile.covers(demand.asked_below)
    always = demand.effect in ASKING or case.tool.confirmation not in MAY_GO_UNASKED
    if demand.confirm and demand.waivable and not always and not waived:
        reasons.append(demand.confirm)
    if case.posture.work_mode is WorkMode.CHAT and demand.effect not in READING:
        reasons.append("work mode `chat` asks before every change")
    return reasons


def find_waiving_rule(case: DecisionCase) -> Rule | None:
    """Find the allow rule that waived a question, for the record."""
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
    waiver = find_waiving_rule(case)
    return Decision(Verdict.ALLOW, rule=waiver.text if waiver else None, demand=case.demand)


# Which tools does a session see? Those that `decide` does not refuse without arguments.


def list_visible_tools(session: Session, posture: Posture, policy: Policy) -> tuple[str, ...]:
    """List the meta-tools, those that are everywhere, those of the session's mode (of all modes, if the list is flat),
    in menu order, and those that the session added. An endpoint for one mode has nothing but that mode."""
    mode = policy.menus.by_name.get(session.mode)
    modes = policy.menus if session.flat else (mode,) if mode else ()
    everywhere = () if session.pinned else policy.menus.tools_everywhere
    of_modes = (tool for mode in modes for tool in mode.tools)
    names = dict.fromkeys((*META_TOOLS, *everywhere, *of_modes, *session.added))
    return tuple(name for name in names if _is_visible(name, session, posture, policy))


def _is_visible(name: str, session: Session, posture: Posture, policy: Policy) -> bool:
    return decide(policy.tools.get(name), Call(name), session, posture, policy).verdict is not Verdict.DENY
