"""`menugate explain`: may this tool run, which layer and rule decide that, and what would have to change?"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_server.cli.call import add_call, parse_call_arguments
from mcp_server.cli.output import print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, add_posture
from mcp_server.cli.servers import add_server, load_judgement, note_servers
from mcp_server.model.posture import AiMode, Profile, RunControl, Stage, WorkMode

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.guards.jail import Jail
    from mcp_server.model.policy import Decision, PathsBeneath, Policy, Rule
    from mcp_server.model.posture import Posture
    from mcp_server.model.results import Problem
    from mcp_server.model.sessions import Hold, Session
    from mcp_server.model.tools import Tool
    from mcp_server.settings import Settings

EXAMPLES = """
menugate explain fs_delete                                  would a model see this tool?
menugate explain fs_delete '{"path": "notes.md"}'           may this call run?
menugate explain Write @call.json --profile restricted      would it under another profile?
menugate explain Edit - --stage warmup --mode swe < c.json  would it in this stage and mode?
menugate explain Write @call.json --quiet                   print nothing; exit 0 if allowed, 1 if not
"""
AXES = {"work_mode": WorkMode, "run_control": RunControl, "ai_mode": AiMode}
Given: TypeAlias = Mapping[str, Any] | None
COLOUR = {"allow": "green", "ask": "yellow", "deny": "red"}
ROOT = "ROOT"


def add(commands: CommandGroup) -> None:
    one = commands.add("explain", EXAMPLES, run)
    add_call(one)
    one.add_argument("--mode", metavar="MODE", help=f"the mode of the call, or {ROOT} (default: one that has the tool)")
    one.add_argument("--stage", choices=tuple(map(str, Stage)), default="act", help="the stage of the run")
    for axis, values in AXES.items():
        one.add_argument(
            f"--{axis.replace('_', '-')}", choices=tuple(map(str, values)), help="as if you had chosen this"
        )
    add_place(one)
    add_server(one)
    add_posture(one)
    one.add_argument("--quiet", action="store_true", help="print nothing; exit 1 if the call is not allowed")
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    given = parse_call_arguments(arguments.arguments)
    judged = load_judgement(arguments, strict=True)
    found = judged.law
    answer = explain_call(found, arguments, given, judged.settings)
    if arguments.quiet:
        return 0 if answer.decision.is_allowed else 1
    if arguments.json:
        print_json(to_json(answer) | {"server": judged.server.pid if judged.server else None})
    else:
        show_explanation(answer, found)
        note_servers(judged)
    return 0


@dataclass(frozen=True, slots=True)
class Explanation:
    tool: str
    carrier: str | None
    given: bool
    """Whether the question is about one call, and not about the tool being listed."""
    session: "Session"
    posture: "Posture"
    decision: "Decision"
    rule: "Rule | None"

    @property
    def layers(self) -> list[tuple[str, str]]:
        """Each layer, and what happened there: passed, the answer, or not reached."""
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
    found: "Configuration", arguments: argparse.Namespace, given: Given, settings: "Settings"
) -> Explanation:
    """Decided as the call would be: a carrier is decided first, then the call inside it."""
    from mcp_server.calls.carriers import normalise_carrier_arguments
    from mcp_server.calls.resolver import resolve_links, unpack_carried_call
    from mcp_server.guards.jail import Jail
    from mcp_server.model.menus import CARRIERS
    from mcp_server.model.policy import Call, Verdict
    from mcp_server.model.results import Problem
    from mcp_server.model.sessions import Session
    from mcp_server.policy.decision import decide

    policy, name, root = found.policy, str(arguments.tool), str(settings.workspace)
    tool, wish = policy.tools.get(name), arguments.mode
    posture, held = load_posture_and_hold(arguments, found, settings)
    jail = Jail(settings.workspace, private=settings.protected_inside_workspace)

    def answer(decision: "Decision | None" = None, carrier: str | None = None) -> Explanation:
        session = Session("", settings.person, find_call_mode(tool, wish, found), Stage(arguments.stage), held=held)
        meant = resolve_links(tool, given, policy, jail.resolve_links, root) if tool and given else None
        call = Call(name, given, led=meant, beneath=find_paths_beneath(tool, (given, meant), policy, jail))
        made = decision or decide(tool, call, session, posture, policy)
        return Explanation(
            name, carrier, given is not None, session, posture, made, find_deciding_rule(made, name, found)
        )

    if tool is None or given is None:
        return answer()
    given = policy.meant(name, given)
    if name not in CARRIERS:
        given = tool.make_paths_relative(given, root)
        return answer()
    given = normalise_carrier_arguments(given, policy)
    opened, first = unpack_carried_call(tool, given, policy, root), answer()
    if isinstance(opened, Problem):
        carried = str(given.get("tool", name))
        carrier, name, tool = (name if carried != name else None), carried, policy.tools.get(carried)
        return answer(build_unfound_decision(opened), carrier)
    if first.decision.verdict is Verdict.DENY:
        return first
    carrier, wish, (tool, given) = name, given.get("mode", wish), opened
    name = tool.name
    return answer(carrier=carrier)


def find_paths_beneath(
    tool: "Tool | None", readings: tuple[Given, ...], policy: "Policy", jail: "Jail"
) -> tuple["PathsBeneath", ...]:
    """What rules say about the files below a folder that the call takes as a whole."""
    from mcp_server.policy.rule_trees import find_paths_beneath

    return (
        find_paths_beneath(tool, [one for one in readings if one is not None], policy, jail.list_beneath)
        if tool
        else ()
    )


def find_call_mode(tool: "Tool | None", wish: str | None, found: "Configuration") -> str | None:
    from mcp_server.cli.menus import find_mode_by_wish

    if wish == ROOT:
        return None
    if wish is not None:
        return find_mode_by_wish(wish, found.policy.menus).name
    holding = found.policy.menus.find_modes_with(tool.name) if tool else ()
    return holding[0].name if holding else None


def load_posture_and_hold(
    arguments: argparse.Namespace, found: "Configuration", settings: "Settings"
) -> tuple["Posture", "Hold | None"]:
    """The person's posture with the options typed here put in, and what pauses all of their runs."""
    from mcp_server.views.posture import build_posture_view, open_state_reader

    with open_state_reader(settings) as state:
        usual = build_posture_view(settings, found, state, by_flag=True).posture
        held = state.load_holds().get((settings.person, "")) if state else None
    axes = AXES | {"profile": Profile}
    wished: dict[str, Any] = {
        axis: values(wish) for axis, values in axes.items() if (wish := getattr(arguments, axis)) is not None
    }
    return replace(usual, **wished).cap_profile(found.policy.ceiling), held


def build_unfound_decision(problem: "Problem") -> "Decision":
    from mcp_server.model.policy import Decision, Layer, Verdict

    return Decision(Verdict.DENY, Layer.FIND, problem.code, problem.message, problem.way_out)


def find_deciding_rule(decision: "Decision", tool: str, found: "Configuration") -> "Rule | None":
    """The rule that decided, with its place; if the call is allowed, the rule that spared a question."""
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
    rules = found.policy.rules
    # A rule about another tool may cover files that this one takes along.
    could = (*rules.find_for_tool(tool, kind), *(rule for rule in rules.every if rule.kind is kind and rule.reaches))
    return next((rule for rule in could if rule.text == decision.rule), None)


def show_explanation(answer: Explanation, found: "Configuration") -> None:
    decision = answer.decision
    say_prose((str(decision.verdict), COLOUR[decision.verdict]), f"  {format_headline(answer)}")
    for text in filter(None, (decision.reason, decision.way_out)):
        say_prose(text, indent="  ")
    say()
    standing = answer.session.mode or ROOT
    posture = answer.posture
    rows = [
        ("layer", f"{decision.layer} ({decision.code})") if decision.layer else ("layer", "no layer objects"),
        *([("rule", f"{answer.rule.kind}: {answer.rule.text}  ({answer.rule.source})")] if answer.rule else []),
        ("called in", f"mode {standing}, stage {answer.session.stage}"),
        ("posture", f"{posture.work_mode} | {posture.run_control} | {posture.profile} | {posture.ai_mode}"),
    ]
    if decision.demand:
        rows.append(("would do", f"{decision.demand.effect}, which needs profile {decision.demand.profile}"))
    print_table(rows)
    say()
    for number, (layer, word) in enumerate(answer.layers, 1):
        say(f"  {number}. {layer:<13}", (word, COLOUR.get(word, "dim")))


def format_headline(answer: Explanation) -> str:
    name = f"`{answer.tool}`" + (f", carried by `{answer.carrier}`," if answer.carrier else "")
    verdict = str(answer.decision.verdict)
    if not answer.given:
        words = {"allow": "is on the list; add arguments to ask about one call"}
        return f"{name} {words.get(verdict, 'is hidden')}"
    words = {"allow": "may run with these arguments", "ask": "needs your approval", "deny": "may not run"}
    return f"{name} {words[verdict]}"


def to_json(answer: Explanation) -> dict[str, Any]:
    decision, rule, posture = answer.decision, answer.rule, answer.posture
    return {
        "tool": answer.tool,
        "carrier": answer.carrier,
        "verdict": decision.verdict,
        "layer": decision.layer,
        "code": decision.code,
        "reason": decision.reason or None,
        "way_out": decision.way_out or None,
        "rule": {"kind": rule.kind, "text": rule.text, "source": rule.source} if rule else None,
        "effect": decision.demand.effect if decision.demand else None,
        "needs_profile": decision.demand.profile if decision.demand else None,
        "mode": answer.session.mode,
        "stage": answer.session.stage,
        "posture": {
            "work_mode": posture.work_mode,
            "run_control": posture.run_control,
            "profile": posture.profile,
            "ai_mode": posture.ai_mode,
        },
        "layers": [{"layer": layer, "answer": word} for layer, word in answer.layers],
    }
