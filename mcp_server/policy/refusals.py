"""Why may a call not run? The refusal of each layer: its code, the reason, and the way out.

The way out is something the model can do (enter another mode, correct the arguments) or something to ask the user for.
It never suggests that the model raise its own rights.
"""

import json
import re

from msgspec.structs import replace

from mcp_server.model.menus import Mode
from mcp_server.model.phases import RETRIED, Step, find_step
from mcp_server.model.policy import Call, Decision, Layer, Policy, Rule, RuleKind, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, Stage
from mcp_server.model.results import Code
from mcp_server.model.sessions import Hold, Session
from mcp_server.model.text import find_nearest_name, format_list, quote_text
from mcp_server.model.tools import Demand, Effect, Tool
from mcp_server.policy.reasoning import HEADINGS, MAX_POINTS, MIN_POINTS

DOES = {
    Effect.DESTROY_LOCAL: "it destroys files",
    Effect.PRODUCTION_MUTATION: "it changes something in production",
}
QUOTED = re.compile("`([^`]*)`")
ALWAYS_ASKS = "this tool asks before every call"
ELSEWHERE = "Continue with a tool that fits the stage; `menu_list` shows them."
STAGES = {
    Stage.WARMUP: (
        "The run is warming up and can only read. Call `think` with the six headings "
        f"{', '.join(HEADINGS)}, then make this call again."
    ),
    Stage.ACT: ELSEWHERE,
    Stage.TOOL_FOLLOWUP: ELSEWHERE,
    Stage.MICRO_STEP: (
        "A unit is done, so the run can only read until the next thought. Call `think` with "
        f"{MIN_POINTS} to {MAX_POINTS} points, each on a line starting with `- `: what happened, what is next and "
        "why. Then make this call again."
    ),
    Stage.DELIVERY_CHECK: "The answer is being delivered, so no tools run. Call `complete` again to start a new run.",
    Stage.QA_REVIEW: "The run is delivered and under review. Call `complete` again to start a new run.",
}
FORWARD = "`get_phase_status` says what is missing; `advance_phase` moves to the next phase."
LIST_MODES = "`menu_list` shows the modes and their tools."
ASK_THE_PERSON = "Continue without it, or say why you need it with `message_user`."


def make_refusal(layer: Layer, code: Code, reason: str, way_out: str, rule: str | None = None) -> Decision:
    return Decision(Verdict.DENY, layer, code, reason, way_out, rule)


def refuse_unknown_tool(name: str, policy: Policy) -> Decision:
    near = find_nearest_name(name, [one for one, tool in policy.tools.items() if tool.is_listed])
    way_out = LIST_MODES
    if near:
        modes = policy.menus.find_modes_with(near)
        place = f" in mode {quote_text(modes[0].name)}" if modes else ""
        way_out = f"Did you mean {quote_text(near)}{place}? {way_out}"
    return make_refusal(Layer.FIND, Code.UNKNOWN_TOOL, f"There is no tool {quote_text(name)}.", way_out)


def refuse_by_rule(tool: Tool, rule: Rule) -> Decision:
    if rule.kind is RuleKind.BLOCK:
        reason = f"The blocklist forbids this call to `{tool.name}`: {describe_rule(rule)}"
        way_out = "No approval or profile changes that; only the operator can edit the blocklist. Find another way."
        return make_refusal(Layer.BLOCK, Code.BLOCKED, reason, way_out, rule.text)
    reason = f"A rule denies this call to `{tool.name}`: {describe_rule(rule)}"
    way_out = f"Only the user can change the rule. {ASK_THE_PERSON}"
    return make_refusal(Layer.RULES, Code.RULE_DENIED, reason, way_out, rule.text)


def refuse_path_beneath(tool: Tool, call: Call, kind: RuleKind) -> Decision | None:
    """Refuse a call on a whole folder because of a path in it."""
    for match in call.beneath:
        if match.rule and match.rule.kind is kind:
            decision = refuse_by_rule(tool, match.rule)
            reason = f"{decision.reason} It would touch {quote_text(match.path)}."
            return replace(decision, reason=reason, way_out=f"Leave that path out. {decision.way_out}")
    unread = next((match for match in call.beneath if match.rule is None), None)
    if unread is None or kind is not RuleKind.DENY:
        return None
    reason = (
        f"{quote_text(unread.path)} is too large, or partly unreadable, to check every path in it against the rules, "
        f"so `{tool.name}` cannot take it whole."
    )
    return make_refusal(Layer.RULES, Code.RULE_DENIED, reason, "Work on smaller parts of it, one at a time.")


def describe_asks_beneath(call: Call) -> list[str]:
    return [
        f"{describe_ask_rule(match.rule)} (it touches {quote_text(match.path)})"
        for match in call.beneath
        if match.rule and match.rule.kind is RuleKind.ASK
    ]


def refuse_person_command(tool: Tool, command: str) -> Decision:
    reason = (
        f"Only the user may run `menugate {command}`: it answers or chooses for them, "
        f"so no call to `{tool.name}` can run it."
    )
    way_out = "No approval or profile changes that. Ask the user to run it in their own terminal."
    return make_refusal(Layer.BLOCK, Code.BLOCKED, reason, way_out)


def describe_ask_rule(rule: Rule) -> str:
    return f"the rule {quote_text(rule.text)} ({rule.source}) asks first{f': {rule.reason}' if rule.reason else ''}"


def describe_rule(rule: Rule) -> str:
    """Quote the rule, with its place in the file and the reason that the operator gave for it."""
    return f"{quote_text(rule.text)} ({rule.source}).{f' {rule.reason}' if rule.reason else ''}"


def refuse_wrong_mode(tool: Tool, session: Session, policy: Policy) -> Decision:
    modes = policy.menus.find_modes_with(tool.name)
    here = policy.menus.by_name.get(session.mode)
    if not modes:
        reason = f"`{tool.name}` is not in any mode of this server."
        way_out = f"{LIST_MODES} The operator can add the tool to a mode."
    elif session.pinned:
        served = f"serves only mode {quote_text(session.mode)}" if session.mode else "serves no mode"
        reason = f"`{tool.name}` is in mode {_format_mode_names(modes)}, and this endpoint {served}."
        way_out = "You cannot reach it from here. Continue with the tools of this endpoint."
    else:
        lost = find_lost_mode(session, policy)
        current = f"in mode `{here.name}`" if here else f"at ROOT{f'. {lost}' if lost else ', in no mode'}"
        reason = f"`{tool.name}` is in mode {_format_mode_names(modes)}; this session is {current}."
        way_out = f"Call {format_enter_call(modes[0])}, then make this call again."
    return make_refusal(Layer.MODE, Code.WRONG_MODE, reason, way_out)


def find_lost_mode(session: Session, policy: Policy) -> str:
    """Say that the mode which the session entered is gone; empty if it is not."""
    if session.mode is None or session.mode in policy.menus.by_name:
        return ""
    return f"The mode {quote_text(session.mode)} that it was in is gone, because the user changed the configuration"


def explain_mode_not_entered(tool: Tool, mode: Mode, decision: Decision, policy: Policy) -> Decision:
    """Reword WRONG_MODE for a carrier that named a mode without the tool: the session did not enter it."""
    modes = policy.menus.find_modes_with(tool.name)
    if decision.code is not Code.WRONG_MODE or not modes:
        return decision
    names = _format_mode_names(modes)
    reason = f"`{tool.name}` is in mode {names}, not in `{mode.name}`, so `{mode.name}` was not entered."
    return replace(decision, reason=reason)


def _format_mode_names(modes: tuple[Mode, ...]) -> str:
    return format_list(mode.name for mode in modes)


def refuse_wrong_stage(tool: Tool, stage: Stage | None) -> Decision:
    if stage is None:
        reason = f"The stage of this run is unknown, so it can only read; `{tool.name}` does more."
        way_out = "Finish with `complete`; the next run starts at a known stage."
    else:
        reason = f"The run is in stage `{stage}`, which does not allow what `{tool.name}` would do."
        way_out = STAGES.get(stage, ELSEWHERE)
    return make_refusal(Layer.STAGE, Code.WRONG_STAGE, reason, way_out)


def refuse_wrong_phase(tool: Tool, phase: str) -> Decision:
    step = find_step(phase)
    reason = f"The run is in phase `{phase}`, which does not include `{tool.name}`."
    way_out = f"{FORWARD} `complete` ends the run and its phases."
    if step is not None:
        way_out = f"It includes {format_list(sorted(step.tools), 'and')}. {way_out}"
    return make_refusal(Layer.STAGE, Code.WRONG_PHASE, reason, way_out)


def refuse_spent_phase(step: Step) -> Decision:
    reason = f"Phase `{step.phase}` has used all of its {step.budget} calls."
    way_out = FORWARD if step not in RETRIED else f"{FORWARD} `return_to_fix_phase` resets the count."
    return make_refusal(Layer.BUDGET, Code.PHASE_SPENT, reason, way_out)


def refuse_read_only_work(tool: Tool, posture: Posture) -> Decision:
    mode = "AI mode `chat`" if posture.ai_mode is AiMode.CHAT else f"Work mode `{posture.work_mode}`"
    reason = f"{mode} is read-only; `{tool.name}` is not."
    way_out = "Describe what you would do instead of doing it. Only the user can choose another mode."
    return make_refusal(Layer.STAGE, Code.READ_ONLY_WORK, reason, way_out)


def refuse_low_profile(
    tool: Tool, needed: Profile, posture: Posture, policy: Policy, *, these_arguments: bool = False, why: str = ""
) -> Decision:
    what = f"`{tool.name}` with these arguments" if these_arguments else f"`{tool.name}`"
    what = f"{why.rstrip('.')}. For that, `{tool.name}`" if why else what
    reason = f"{what} needs the profile `{needed}`; the current one is `{posture.profile}`."
    if not policy.ceiling.covers(posture.profile):
        reason = f"{what} needs the profile `{needed}`; the operator allows `{policy.ceiling}` at most."
    if policy.ceiling.covers(needed):
        who = f"Only the user can raise the profile, with `menugate profile {needed}` at a terminal."
    else:
        who = "Only the operator can allow a higher one."
    return make_refusal(Layer.PROFILE, Code.PROFILE_TOO_LOW, reason, f"{who} {ASK_THE_PERSON}")


def refuse_useless_question(tool: Tool, demand: Demand, session: Session, posture: Posture, policy: Policy) -> Decision:
    """Refuse instead of asking, because the call would fail even if it were approved."""
    needed, why = demand.takes or demand.profile, demand.confirm or ""
    low = refuse_low_profile(tool, needed, posture, policy, these_arguments=True, why=why)
    instead = demand.instead
    mode = find_mode_with(instead, session, policy)
    if mode is None:
        detour = f"{demand.detour} " if not instead and _has_detour(demand, session, policy) else ""
        return replace(low, way_out=f"Nothing ran. {detour}{low.way_out}")
    first = "" if session.flat or mode.name == session.mode else f"{format_enter_call(mode)}, then "
    asks = "it asks the user if necessary" if len(instead) == 1 else "they ask the user if necessary"
    after = f". {demand.detour}" if demand.detour else f": {asks}."
    return replace(
        low, way_out=f"Nothing ran. Call {first}{format_list(instead, 'and')} for that{after}", instead=instead
    )


def _has_detour(demand: Demand, session: Session, policy: Policy) -> bool:
    """True if there is one, and the session can call every tool in it."""
    named = tuple(name for name in QUOTED.findall(demand.detour) if name in policy.tools)
    return bool(demand.detour) and (not named or find_mode_with(named, session, policy) is not None)


def find_mode_with(tools: tuple[str, ...], session: Session, policy: Policy) -> Mode | None:
    """Find a mode in which the session can call all of these, preferably the current one."""
    modes = [mode for mode in policy.menus.modes if tools and set(tools) <= {*mode.tools, *mode.behind}]
    current = next((mode for mode in modes if mode.name == session.mode), None)
    return current or (modes[0] if modes and (session.flat or not session.pinned) else None)


def format_enter_call(mode: Mode, handle: str | None = None) -> str:
    call = {"mode": mode.name} | ({"menu": handle} if handle else {})
    return f"`menu_enter` with {json.dumps(call, ensure_ascii=False)}"


NEEDS_APPROVAL = "`{}` needs the user's approval: "
NO_SANDBOX = "no sandbox works on this machine"


def refuse_without_sandbox(tool: Tool) -> Decision:
    reason = f"`{tool.name}` runs only in a sandbox, and {NO_SANDBOX}."
    way_out = "Ask the user to install bubblewrap; `menugate status` says what was tried."
    return make_refusal(Layer.PROFILE, Code.PROFILE_TOO_LOW, reason, way_out)


def explain_missing_sandbox(low: Decision) -> Decision:
    return replace(low, reason=f"{low.reason} That is one profile higher than usual, because {NO_SANDBOX}.")


def refuse_unfit_arguments(tool: Tool, fault: str) -> Decision:
    reason = f"The arguments do not fit `{tool.name}`: {fault}"
    way_out = "Nothing ran. Correct the arguments and call again."
    return make_refusal(Layer.ARGUMENTS, Code.INVALID_ARGUMENTS, reason, way_out)


def refuse_unclear_demand(tool: Tool) -> Decision:
    reason = f"menugate cannot tell what `{tool.name}` would do with these arguments, so it does not run."
    return make_refusal(Layer.ARGUMENTS, Code.INTERNAL, reason, "Use other arguments or another tool.")


def refuse_spent_budget(limit: str) -> Decision:
    reason = f"The run has used up its budget of {limit}."
    way_out = (
        "Finish with `complete` and say what is left to do, or ask the user with `message_user` "
        "to resume it with `menugate next`."
    )
    return make_refusal(Layer.BUDGET, Code.BUDGET_SPENT, reason, way_out)


def refuse_paused_run(hold: Hold) -> Decision:
    way_out = (
        "Only the user can resume it, with `menugate next` at a terminal. Until then, end your turn, say with "
        "`message_user` what you would do next, or finish with `complete`."
    )
    return make_refusal(Layer.BUDGET, Code.RUN_PAUSED, f"The run is paused: {hold.reason.rstrip('.')}.", way_out)


def make_ask_decision(tool: Tool, reasons: list[str], rule: Rule | None, demand: Demand) -> Decision:
    reason = f"{NEEDS_APPROVAL.format(tool.name)}{'; '.join(reason.rstrip('.') for reason in reasons)}."
    way_out = "Nothing ran. Once the user has approved it, make the same call again."
    asks = Decision(Verdict.ASK, Layer.CONFIRMATION, Code.APPROVAL_REQUIRED, reason, way_out, demand=demand)
    return replace(asks, rule=rule.text, rule_source=rule.source, rule_owner=rule.owner) if rule else asks
