"""What is said when a call may not run: which layer refused, why, and the way out.

A way out is for the model where the model can take it (another mode, other arguments), and otherwise tells the person
what to do. It never suggests that the model raise its own rights, and has no means to.
"""

import json
from dataclasses import replace

from mcp_server.model.menus import Mode
from mcp_server.model.phases import RETRIED, Step, find_step
from mcp_server.model.policy import Call, Decision, Layer, Policy, Rule, RuleKind, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, Stage
from mcp_server.model.results import Code
from mcp_server.model.sessions import Hold, Session
from mcp_server.model.text import find_nearest_name, format_list, quote_text
from mcp_server.model.tools import Demand, Effect, Tool
from mcp_server.policy.reasoning import FEWEST_POINTS, HEADINGS, MOST_POINTS

DOES = {
    Effect.DESTROY_LOCAL: "it destroys files here",
    Effect.PRODUCTION_MUTATION: "it changes something in production",
}
ALWAYS_ASKS = "this tool asks before every call"
ELSEWHERE = "Go on with a tool that fits the stage; `menu_list` shows them."
STAGES = {
    Stage.WARMUP: (
        "The run is still warming up and only reads. Call `think` with the six headings "
        f"{', '.join(HEADINGS)}, then make this call again."
    ),
    Stage.ACT: ELSEWHERE,
    Stage.TOOL_FOLLOWUP: ELSEWHERE,
    Stage.MICRO_STEP: (
        "A unit is done, and only reading goes on without a thought. Call `think` with "
        f"{FEWEST_POINTS} to {MOST_POINTS} points, each on a line beginning with `- `: what happened, what is next and "
        "why. Then make this call again."
    ),
    Stage.DELIVERY_CHECK: "The answer is being delivered and no tools run. Calling `complete` again begins a new run.",
    Stage.QA_REVIEW: "The run is delivered and only read over. Calling `complete` again begins a new run.",
}
FORWARD = "`get_phase_status` says what is missing; `advance_phase` goes on to the next phase."
ASK_THE_PERSON = "Go on without it, or tell the person with `message_user` what you need it for."


def make_refusal(layer: Layer, code: Code, reason: str, way_out: str, rule: str | None = None) -> Decision:
    return Decision(Verdict.DENY, layer, code, reason, way_out, rule)


def refuse_unknown_tool(name: str, policy: Policy) -> Decision:
    near = find_nearest_name(name, policy.tools)
    way_out = "`menu_list` shows what there is."
    if near:
        modes = policy.menus.find_modes_with(near)
        way_out = (
            f"Did you mean {quote_text(near)}{f' in mode {quote_text(modes[0].name)}' if modes else ''}? {way_out}"
        )
    return make_refusal(Layer.FIND, Code.UNKNOWN_TOOL, f"There is no tool {quote_text(name)} here.", way_out)


def refuse_by_rule(tool: Tool, rule: Rule) -> Decision:
    if rule.kind is RuleKind.BLOCK:
        reason = f"The blocklist forbids this call of `{tool.name}`: {describe_rule(rule)}"
        way_out = "No approval and no profile changes that; only whoever keeps the blocklist can. Find another way."
        return make_refusal(Layer.BLOCK, Code.BLOCKED, reason, way_out, rule.text)
    reason = f"A rule denies this call of `{tool.name}`: {describe_rule(rule)}"
    way_out = f"Only the person can change the rule. {ASK_THE_PERSON}"
    return make_refusal(Layer.RULES, Code.RULE_DENIED, reason, way_out, rule.text)


def refuse_path_beneath(tool: Tool, call: Call, kind: RuleKind) -> Decision | None:
    """Of what lies in the tree that a call takes whole."""
    found = next((one for one in call.beneath if one.rule and one.rule.kind is kind), None)
    if found is not None and found.rule is not None:
        decision = refuse_by_rule(tool, found.rule)
        said = f"It touches {quote_text(found.path)}."
        return replace(decision, reason=f"{decision.reason} {said}", way_out=f"Leave that out. {decision.way_out}")
    large = next((one for one in call.beneath if one.rule is None), None)
    if large is None or kind is not RuleKind.DENY:
        return None
    reason = (
        f"{quote_text(large.path)} holds too much, or something that cannot be looked into, to tell whether a rule "
        "about "
        f"paths speaks about any of it, so `{tool.name}` does not take it whole."
    )
    return make_refusal(Layer.RULES, Code.RULE_DENIED, reason, "Take smaller parts of it, one at a time.")


def describe_asks_beneath(call: Call) -> list[str]:
    found = ((one.rule, one.path) for one in call.beneath if one.rule and one.rule.kind is RuleKind.ASK)
    return [f"{describe_ask_rule(rule)} (it touches {quote_text(path)})" for rule, path in found if rule]


def refuse_person_command(tool: Tool, command: str) -> Decision:
    reason = (
        f"`menugate {command}` is the user's to type: it answers or chooses for them, and no call of `{tool.name}` may."
    )
    way_out = "No approval and no profile changes that. Ask the user to type it in a terminal of their own."
    return make_refusal(Layer.BLOCK, Code.BLOCKED, reason, way_out)


def describe_ask_rule(rule: Rule) -> str:
    return f"the rule {quote_text(rule.text)} ({rule.source}) asks first{f': {rule.reason}' if rule.reason else ''}"


def describe_rule(rule: Rule) -> str:
    """The rule, where it stands, and what the operator wrote beside it for whoever it stops."""
    return f"{quote_text(rule.text)} ({rule.source}).{f' {rule.reason}' if rule.reason else ''}"


def refuse_wrong_mode(tool: Tool, session: Session, policy: Policy) -> Decision:
    """The tool is not on the menu of this session's mode."""
    modes = policy.menus.find_modes_with(tool.name)
    here = policy.menus.get(session.mode)
    if not modes:
        reason = f"`{tool.name}` is in no mode of this server."
        way_out = "`menu_list` shows what there is. Whoever runs the server can put the tool into a mode."
    elif session.pinned:
        only = f"only serves mode {quote_text(session.mode)}" if session.mode else "serves no mode"
        reason = f"`{tool.name}` is in mode {_format_mode_names(modes)}, and this endpoint {only}."
        way_out = "It cannot be reached from here. Go on with the tools of this endpoint."
    else:
        standing = f"this session is in mode `{here.name}`" if here else "this session is at ROOT, in no mode"
        reason = f"`{tool.name}` is in mode {_format_mode_names(modes)}, and {standing}."
        way_out = f"Call {format_enter_call(modes[0])}, then make this call again."
    return make_refusal(Layer.MODE, Code.WRONG_MODE, reason, way_out)


def explain_mode_not_entered(tool: Tool, mode: Mode, decision: Decision, policy: Policy) -> Decision:
    """The mode that a carrier was to enter does not have the tool, so that the session stays where it is."""
    modes = policy.menus.find_modes_with(tool.name)
    if decision.code is not Code.WRONG_MODE or not modes:
        return decision
    there = _format_mode_names(modes)
    reason = f"`{tool.name}` is in mode {there} and not in `{mode.name}`, which was therefore not entered."
    return replace(decision, reason=reason)


def _format_mode_names(modes: tuple[Mode, ...]) -> str:
    return format_list(mode.name for mode in modes)


def refuse_wrong_stage(tool: Tool, stage: Stage | None) -> Decision:
    if stage is None:
        reason = f"The stage of this run is not known, so only reading is allowed, and `{tool.name}` does more."
        way_out = "Finish with `complete`; the next run begins at a known stage."
    else:
        reason = f"The stage `{stage}` of this run does not include what `{tool.name}` would do."
        way_out = STAGES.get(stage, ELSEWHERE)
    return make_refusal(Layer.STAGE, Code.WRONG_STAGE, reason, way_out)


def refuse_wrong_phase(tool: Tool, phase: str) -> Decision:
    step = find_step(phase)
    reason = f"This run is in the phase `{phase}`, which does not include `{tool.name}`."
    way_out = f"{FORWARD} `complete` ends the run and its phases."
    if step is not None:
        way_out = f"It has {format_list(sorted(step.tools))}. {way_out}"
    return make_refusal(Layer.STAGE, Code.WRONG_PHASE, reason, way_out)


def refuse_spent_phase(step: Step) -> Decision:
    reason = f"The phase `{step.phase}` has used up its {step.budget} calls."
    way_out = FORWARD if step not in RETRIED else f"{FORWARD} `return_to_fix_phase` gives all of them back."
    return make_refusal(Layer.BUDGET, Code.PHASE_SPENT, reason, way_out)


def refuse_read_only_work(tool: Tool, posture: Posture) -> Decision:
    holds = "ai mode `chat`" if posture.ai_mode is AiMode.CHAT else f"work mode `{posture.work_mode}`"
    reason = f"The {holds} only reads, and `{tool.name}` would do more than read."
    way_out = "Describe what you would do instead of doing it. Only the user can choose another kind of work."
    return make_refusal(Layer.STAGE, Code.READ_ONLY_WORK, reason, way_out)


def refuse_low_profile(
    tool: Tool, needed: Profile, posture: Posture, policy: Policy, *, these_arguments: bool = False
) -> Decision:
    what = f"`{tool.name}` with these arguments" if these_arguments else f"`{tool.name}`"
    reason = f"The person's permission profile is `{posture.profile}`, and {what} needs `{needed}`."
    if not policy.ceiling.covers(posture.profile):
        reason = f"The operator allows at most the profile `{policy.ceiling}`, and {what} needs `{needed}`."
    if policy.ceiling.covers(needed):
        who = f"Only the person can raise the profile, with `menugate profile {needed}` at a terminal."
    else:
        who = "Only the operator can allow more than that."
    return make_refusal(Layer.PROFILE, Code.PROFILE_TOO_LOW, reason, f"{who} {ASK_THE_PERSON}")


def refuse_useless_question(tool: Tool, demand: Demand, session: Session, posture: Posture, policy: Policy) -> Decision:
    """Nobody is asked about what would fail with a yes as well."""
    low = refuse_low_profile(tool, demand.takes or demand.profile, posture, policy, these_arguments=True)
    instead = demand.instead
    mode = find_mode_with(instead, session, policy)
    if mode is None:
        return low
    first = "" if session.flat or mode.name == session.mode else f"{format_enter_call(mode)}, then "
    asks = "it asks the user where it has to" if len(instead) == 1 else "they ask the user where they have to"
    return replace(
        low, way_out=f"Nothing ran. Call {first}{format_list(instead, 'and')} for that: {asks}.", instead=instead
    )


def find_mode_with(tools: tuple[str, ...], session: Session, policy: Policy) -> Mode | None:
    """The mode in which a session can call all of these, the one it is in before any other."""
    found = [mode for mode in policy.menus.modes if tools and set(tools) <= set(mode.tools)]
    here = next((mode for mode in found if mode.name == session.mode), None)
    return here or (found[0] if found and (session.flat or not session.pinned) else None)


def format_enter_call(mode: Mode, handle: str | None = None) -> str:
    call = {"mode": mode.name} | ({"menu": handle} if handle else {})
    return f"`menu_enter` with {json.dumps(call, ensure_ascii=False)}"


NO_SANDBOX = "this machine has no sandbox that holds"
INSTALL_ONE = "Have the person install bubblewrap; `menugate status` says what was tried."


def refuse_without_sandbox(tool: Tool) -> Decision:
    reason = f"`{tool.name}` runs only shut in, and {NO_SANDBOX}."
    return make_refusal(Layer.PROFILE, Code.PROFILE_TOO_LOW, reason, INSTALL_ONE)


def explain_missing_sandbox(low: Decision) -> Decision:
    return replace(low, reason=f"{low.reason} It needs one profile more than elsewhere, because {NO_SANDBOX}.")


def refuse_unfit_arguments(tool: Tool, fault: str) -> Decision:
    reason = f"The arguments do not fit `{tool.name}`: {fault}"
    way_out = "Nothing ran. Correct the arguments and call again."
    return make_refusal(Layer.ARGUMENTS, Code.INVALID_ARGUMENTS, reason, way_out)


def refuse_unclear_demand(tool: Tool) -> Decision:
    reason = f"It cannot be told what `{tool.name}` would do with these arguments, so it does not run."
    return make_refusal(Layer.ARGUMENTS, Code.INTERNAL, reason, "Use other arguments or another tool.")


def refuse_spent_budget(limit: str) -> Decision:
    reason = f"This run has used up its budget of {limit}."
    way_out = (
        "Finish with `complete` and say what is left to do, or tell the person with `message_user`; "
        "they can let it go on with `menugate next`."
    )
    return make_refusal(Layer.BUDGET, Code.BUDGET_SPENT, reason, way_out)


def refuse_paused_run(held: Hold) -> Decision:
    way_out = (
        "Only the person lets it go on, with `menugate next` at a terminal. Until then end the turn, tell the person "
        "with `message_user` what you would do next, or finish with `complete`."
    )
    return make_refusal(Layer.BUDGET, Code.RUN_PAUSED, f"This run is paused: {held.reason.rstrip('.')}.", way_out)


def make_ask_decision(tool: Tool, reasons: list[str], rule: Rule | None, demand: Demand) -> Decision:
    reason = f"`{tool.name}` waits for the person's yes: {'; '.join(one.rstrip('.') for one in reasons)}."
    way_out = "Nothing ran. Once the person has said yes, make the same call again."
    text = rule.text if rule else None
    return Decision(Verdict.ASK, Layer.CONFIRMATION, Code.APPROVAL_REQUIRED, reason, way_out, text, demand)
