"""`menugate explain`: may this tool run, which layer and rule decide, and what would have to change?"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.cli.call import add_call, parse_call_arguments
from mcp_server.cli.output import print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, add_posture
from mcp_server.cli.servers import add_server, load_judgement, note_servers
from mcp_server.model.posture import AiMode, Profile, RunControl, Stage, WorkMode

if TYPE_CHECKING:
    from mcp_server.app import Guards
    from mcp_server.config.load import Configuration
    from mcp_server.guards.jail import Jail
    from mcp_server.model.policy import Decision, PathsBeneath, Policy, Rule
    from mcp_server.model.posture import Posture
    from mcp_server.model.results import Problem
    from mcp_server.model.sessions import Hold, Session
    from mcp_server.model.tools import Tool
    from mcp_server.policy.decision import DecisionCase
    from mcp_server.settings import Settings

EXAMPLES = """
menugate explain fs_delete                                  would a model see this tool?
menugate explain fs_delete '{"path": "notes.md"}'           may this call run?
menugate explain Write @call.json --profile restricted      and with another profile?
menugate explain Edit - --stage warmup --mode swe < c.json  and in this stage and mode?
menugate explain Write @call.json --quiet                   print nothing; exit 0 if allowed, 1 if not
"""
AXES = {"work_mode": WorkMode, "run_control": RunControl, "ai_mode": AiMode}
CallArguments: TypeAlias = Mapping[str, Any] | None
COLOUR = {"allow": "green", "ask": "yellow", "deny": "red"}
ROOT = "ROOT"


def add(commands: CommandGroup) -> None:
    command = commands.add("explain", EXAMPLES, run)
    add_call(command)
    command.add_argument(
        "--mode", metavar="MODE", help=f"the mode of the call, or {ROOT} (default: a mode that has the tool)"
    )
    command.add_argument("--stage", choices=tuple(map(str, Stage)), default="act", help="the stage of the run")
    for axis, values in AXES.items():
        command.add_argument(
            f"--{axis.replace('_', '-')}", choices=tuple(map(str, values)), help="assume that you chose this"
        )
    add_place(command)
    add_server(command)
    add_posture(command)
    command.add_argument("--quiet", action="store_true", help="print nothing; exit 1 if the call is not allowed")
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    call_arguments = parse_call_arguments(arguments.arguments)
    judgement = load_judgement(arguments, strict=True)
    configuration = judgement.configuration
    explanation = explain_call(configuration, arguments, call_arguments, judgement.settings)
    if arguments.quiet:
        return 0 if explanation.decision.is_allowed else 1
    if arguments.json:
        print_json(to_json(explanation) | {"server": judgement.server.pid if judgement.server else None})
    else:
        show_explanation(explanation, configuration)
        note_servers(judgement)
    return 0


class Explanation(Struct, frozen=True):
    tool: str
    carrier: str | None
    is_about_call: bool
    """Whether the question is about one call, not about whether the tool is listed."""
    session: "Session"
    posture: "Posture"
    decision: "Decision"
    rule: "Rule | None"

    @property
    def layers(self) -> list[tuple[str, str]]:
        """Each layer with its result: passed, the answer, or not reached."""
        from mcp_server.model.policy import Layer

        rows: list[tuple[str, str]] = []
        word = "passed"
        for layer in Layer:
            if layer is self.decision.layer:
                rows.append((layer, str(self.decision.verdict)))
                word = "not reached"
            else:
                rows.append((layer, word))
        return rows


def explain_call(
    configuration: "Configuration", arguments: argparse.Namespace, call_arguments: CallArguments, settings: "Settings"
) -> Explanation:
    """Decide as for the real call: the carrier first, then the call inside it."""
    from mcp_server.calls.carriers import normalise_carrier_arguments
    from mcp_server.calls.resolver import resolve_links, unpack_carried_call
    from mcp_server.compose import build_guards
    from mcp_server.guards.jail import Jail
    from mcp_server.model.menus import CARRIERS
    from mcp_server.model.policy import Call, Verdict
    from mcp_server.model.results import Problem
    from mcp_server.model.sessions import Session
    from mcp_server.policy.decision import DecisionCase

    policy, name, root = configuration.policy, str(arguments.tool), str(settings.workspace)
    tool, mode = policy.tools.get(name), arguments.mode
    posture, hold = load_posture_and_hold(arguments, configuration, settings)
    jail = Jail(settings.workspace, private=settings.protected_inside_workspace)

    def answer(decision: "Decision | None" = None, carrier: str | None = None) -> Explanation:
        session = Session(
            "", settings.person, find_call_mode(tool, mode, configuration), Stage(arguments.stage), held=hold
        )
        resolved_arguments = (
            resolve_links(tool, call_arguments, policy, jail.resolve_links, root) if tool and call_arguments else None
        )
        call = Call(
            name,
            call_arguments,
            led=resolved_arguments,
            beneath=find_paths_beneath(tool, (call_arguments, resolved_arguments), policy, jail),
        )
        final_decision = decision or decide_and_look(
            DecisionCase(tool, call, session, posture, policy), jail, partial(build_guards, configuration, settings)
        )
        return Explanation(
            name,
            carrier,
            call_arguments is not None,
            session,
            posture,
            final_decision,
            find_deciding_rule(final_decision, name, configuration),
        )

    if tool is None or call_arguments is None:
        return answer()
    call_arguments = policy.meant(name, call_arguments)
    if name not in CARRIERS:
        call_arguments = tool.make_paths_relative(call_arguments, root)
        return answer()
    call_arguments = normalise_carrier_arguments(call_arguments, policy)
    carried_call, carrier_answer = unpack_carried_call(tool, call_arguments, policy, root), answer()
    if isinstance(carried_call, Problem):
        carried = str(call_arguments.get("tool", name))
        carrier, name, tool = (name if carried != name else None), carried, policy.tools.get(carried)
        return answer(build_unfound_decision(carried_call), carrier)
    if carrier_answer.decision.verdict is Verdict.DENY:
        return carrier_answer
    carrier, mode, (tool, call_arguments) = name, call_arguments.get("mode", mode), carried_call
    name = tool.name
    return answer(carrier=carrier)


def decide_and_look(case: "DecisionCase", jail: "Jail", load_guards: "Callable[[], Guards]") -> "Decision":
    """Decide; if only what is there makes the call ask, look at that."""
    from mcp_server.model.policy import Verdict
    from mcp_server.policy.decision import decide

    decision = decide(case.tool_or_none, case.call, case.session, case.posture, case.policy)
    if decision.verdict is not Verdict.ASK:
        return decision
    import anyio

    from mcp_server.calls.workspace_look import WorkspaceLook

    look = WorkspaceLook(jail, load_guards().commands)
    return anyio.run(look.decide, case, log_fault)


def log_fault(fault: BaseException) -> None:
    import logging

    logging.getLogger("menugate").error("The tool could not look at the workspace: %s", fault)


def find_paths_beneath(
    tool: "Tool | None", readings: tuple[CallArguments, ...], policy: "Policy", jail: "Jail"
) -> tuple["PathsBeneath", ...]:
    """Apply the rules to the files below a folder that the call takes as a whole."""
    from mcp_server.policy.rule_trees import find_paths_beneath

    return (
        find_paths_beneath(
            tool, [arguments for arguments in readings if arguments is not None], policy, jail.list_beneath
        )
        if tool
        else ()
    )


def find_call_mode(tool: "Tool | None", mode: str | None, configuration: "Configuration") -> str | None:
    from mcp_server.cli.menus import find_mode_by_words

    if mode == ROOT:
        return None
    if mode is not None:
        return find_mode_by_words(mode, configuration.policy.menus).name
    modes = configuration.policy.menus.find_modes_with(tool.name) if tool else ()
    return modes[0].name if modes else None


def load_posture_and_hold(
    arguments: argparse.Namespace, configuration: "Configuration", settings: "Settings"
) -> tuple["Posture", "Hold | None"]:
    """Load the user's posture, apply the options typed here, and return it with what pauses all of their runs."""
    from mcp_server.config.load import get_limits
    from mcp_server.views.posture import build_posture_view, open_state_reader

    with open_state_reader(settings) as state:
        posture = build_posture_view(settings, get_limits(configuration, settings), state, by_flag=True).posture
        hold = state.load_holds().get((settings.person, "")) if state else None
    axes = AXES | {"profile": Profile}
    overrides: dict[str, Any] = {
        axis: values(word) for axis, values in axes.items() if (word := getattr(arguments, axis)) is not None
    }
    return replace(posture, **overrides).cap_profile(configuration.policy.ceiling), hold


def build_unfound_decision(problem: "Problem") -> "Decision":
    from mcp_server.model.policy import Decision, Layer, Verdict

    return Decision(Verdict.DENY, Layer.FIND, problem.code, problem.message, problem.way_out)


def find_deciding_rule(decision: "Decision", tool: str, configuration: "Configuration") -> "Rule | None":
    """Find the rule that decided, with its place; if the call is allowed, the rule that made a question unnecessary."""
    from mcp_server.model.policy import Layer, RuleKind

    kinds = {
        Layer.BLOCK: RuleKind.BLOCK,
        Layer.RULES: RuleKind.DENY,
        Layer.CONFIRMATION: RuleKind.ASK,
        None: RuleKind.ALLOW,
    }
    kind = kinds.get(decision.layer)
    if decision.rule is None or kind is None:
        return None
    rules = configuration.policy.rules
    # A rule about another tool may cover files that this call includes.
    candidates = (
        *rules.find_for_tool(tool, kind),
        *(rule for rule in rules.every if rule.kind is kind and rule.reaches),
    )
    return next((rule for rule in candidates if rule.text == decision.rule), None)


def show_explanation(explanation: Explanation, configuration: "Configuration") -> None:
    decision = explanation.decision
    say_prose((str(decision.verdict), COLOUR[decision.verdict]), f"  {format_headline(explanation)}")
    for text in filter(None, (decision.reason, decision.way_out)):
        say_prose(text, indent="  ")
    say()
    mode = explanation.session.mode or ROOT
    posture = explanation.posture
    rows = [
        ("layer", f"{decision.layer} ({decision.code})") if decision.layer else ("layer", "no layer objects"),
        *(
            [("rule", f"{explanation.rule.kind}: {explanation.rule.text}  ({explanation.rule.source})")]
            if explanation.rule
            else []
        ),
        ("called in", f"mode {mode}, stage {explanation.session.stage}"),
        ("posture", f"{posture.work_mode} | {posture.run_control} | {posture.profile} | {posture.ai_mode}"),
    ]
    if decision.demand:
        rows.append(("effect", f"{decision.demand.effect}, which needs profile {decision.demand.profile}"))
    print_table(rows)
    say()
    for number, (layer, word) in enumerate(explanation.layers, 1):
        say(f"  {number}. {layer:<13}", (word, COLOUR.get(word, "dim")))


def format_headline(explanation: Explanation) -> str:
    name = f"`{explanation.tool}`" + (f", carried by `{explanation.carrier}`," if explanation.carrier else "")
    verdict = str(explanation.decision.verdict)
    if not explanation.is_about_call:
        words = {"allow": "is listed; add arguments to ask about a particular call"}
        return f"{name} {words.get(verdict, 'is hidden')}"
    words = {"allow": "may run with these arguments", "ask": "needs your approval", "deny": "may not run"}
    return f"{name} {words[verdict]}"


def to_json(explanation: Explanation) -> dict[str, Any]:
    decision, rule, posture = explanation.decision, explanation.rule, explanation.posture
    return {
        "tool": explanation.tool,
        "carrier": explanation.carrier,
        "verdict": decision.verdict,
        "layer": decision.layer,
        "code": decision.code,
        "reason": decision.reason or None,
        "way_out": decision.way_out or None,
        "rule": {"kind": rule.kind, "text": rule.text, "source": rule.source} if rule else None,
        "effect": decision.demand.effect if decision.demand else None,
        "needs_profile": decision.demand.profile if decision.demand else None,
        "mode": explanation.session.mode,
        "stage": explanation.session.stage,
        "posture": {
            "work_mode": posture.work_mode,
            "run_control": posture.run_control,
            "profile": posture.profile,
            "ai_mode": posture.ai_mode,
        },
        "layers": [{"layer": layer, "answer": word} for layer, word in explanation.layers],
    }
