"""What would change if a rule allowed this call from now on? Nothing is written here."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_server.views.text import ViewError

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.approvals import Approval
    from mcp_server.model.policy import Decision, Rule
    from mcp_server.model.posture import Posture
    from mcp_server.model.tools import Arguments, Tool
    from mcp_server.settings import Settings
    from mcp_server.state.reader import Reader

ONCE = "approve it once, with `menugate approve {id}`."
RECENT_ROWS = 2_000
"""How many rows of the ledger to look at."""


class AskedCall(Struct, frozen=True):
    """The call that a question is about."""

    question: "Approval"
    tool: "Tool"
    arguments: "Arguments"

    @property
    def free(self) -> tuple[str, ...]:
        """The arguments that may differ, because they are what is written into the file that the others name."""
        from mcp_server.calls.approval_contents import is_content

        return tuple(name for name in self.tool.arguments.get("properties", {}) if is_content(self.tool, name))

    def write_rule(self) -> str:
        from mcp_server.policy.rule_exact import InexactRule, write_exact_rule

        try:
            return write_exact_rule(self.tool, self.arguments, self.free)
        except InexactRule as why:
            raise make_once_error(f"no rule can match exactly this call: {why}", self.question) from None


def find_asked_call(question: "Approval", tools: "Mapping[str, Tool]") -> AskedCall:
    """Find the call, if a rule may be written for it; raise if it can only be approved once."""
    from mcp_server.model.tools import ASKING

    wanted, tool = question.wanted, tools.get(question.wanted.tool)
    fields: Sequence[Mapping[str, Any]] | None = question.details.get("arguments")
    if tool is None or fields is None:
        raise make_once_error("this question does not say enough about its call", question)
    if wanted.effect in ASKING:
        raise make_once_error(f"a call with the effect `{wanted.effect}` is never allowed by a rule", question)
    if any("masked" in field for field in fields):
        raise make_once_error("the call contains a secret, which a rule would have to contain as well", question)
    if question.details.get("at_the_moment"):
        raise make_once_error("what this call does depends on more than its arguments", question)
    if not wanted.lasting:
        reason: str | None = question.details.get("once_because")
        raise make_once_error(reason or "this call destroys something, or touches something protected", question)
    return AskedCall(question, tool, {field["name"]: field["value"] for field in fields})


def make_once_error(why: str, question: "Approval") -> ViewError:
    return ViewError(f"{why}; {ONCE.format(id=question.id)}")


def decide_asked_call(
    asked: AskedCall, configuration: "Configuration", settings: "Settings", posture: "Posture"
) -> "Decision":
    """Decide as for the call itself, but as if no run were paused and no budget spent."""
    from mcp_server.calls.resolver import resolve_links
    from mcp_server.guards.jail import Jail
    from mcp_server.model.policy import Call
    from mcp_server.model.sessions import Session
    from mcp_server.policy.decision import decide
    from mcp_server.policy.rule_trees import find_paths_beneath

    policy, tool, arguments = configuration.policy, asked.tool, asked.arguments
    jail = Jail(settings.workspace, private=settings.protected_inside_workspace)
    led = resolve_links(tool, arguments, policy, jail.resolve_links, str(settings.workspace))
    if led is not None:
        why = "a path of this call goes through a link, and a rule would have to allow wherever the link leads"
        raise make_once_error(why, asked.question)
    beneath = find_paths_beneath(tool, [arguments], policy, jail.list_beneath)
    session = Session("", asked.question.wanted.principal, stage=asked.question.wanted.stage, flat=True)
    return decide(tool, Call(tool.name, arguments, beneath=beneath), session, posture, policy)


# What would the rule have changed? Judged by the one line that is kept about each call.


class RuleEffect(Struct, frozen=True):
    calls: int
    """Other calls that were looked at."""
    allowed: tuple[str, ...]
    """The lines of those that asked and would have run without asking."""
    unclear: int
    """Those that asked, and whose line does not tell."""


def measure_rule_effect(
    state: "Reader", asked: AskedCall, configuration: "Configuration", settings: "Settings"
) -> RuleEffect:
    from mcp_server.model.glances import list_shown_names
    from mcp_server.policy.rule_exact import write_exact_rule

    shown = set(list_shown_names(asked.tool))
    hidden = [name for name in asked.tool.arguments.get("properties", {}) if name not in shown]
    whole = compile_rule(asked.write_rule(), asked.tool, configuration, settings)
    part = compile_rule(write_exact_rule(asked.tool, asked.arguments, hidden), asked.tool, configuration, settings)
    allowed: list[str] = []
    unclear = 0
    calls = list_recent_calls(state, asked.question.id)
    for line in (line for line, has_asked in calls if has_asked):
        match judge_line(line, asked.tool, (whole, part)):
            case True:
                allowed.append(line)
            case None:
                unclear += 1
            case False:
                pass
    return RuleEffect(len(calls), tuple(allowed), unclear)


def list_recent_calls(state: "Reader", question: str) -> list[tuple[str, bool]]:
    """List the lines of other calls, and whether the user was asked about each. A call that asked has a row for the
    question and one for what it did afterwards, and counts once."""
    from mcp_server.state.engine.rows import LedgerFilter

    rows = list(state.read_rows(LedgerFilter(kinds=("intent", "question", "refusal"), tail=RECENT_ROWS)))
    glances = state.load_glances(row.seq for row in rows)
    calls: dict[object, tuple[str, bool]] = {}
    for row in rows:
        key = row.fields.get("question") or row.fields.get("approval") or row.seq
        if row.seq in glances and key != question:
            asked_before = key in calls and calls[key][1]
            calls[key] = glances[row.seq], asked_before or row.kind == "question"
    return list(calls.values())


def judge_line(line: str, tool: "Tool", rules: "tuple[Rule, Rule]") -> bool | None:
    """Would the rule have allowed this call? `rules`: the rule, and what it says about the arguments that a line shows.
    None if the line does not tell."""
    from mcp_server.model.glances import parse_glance

    if line.partition(" ")[0] != tool.name:
        return False
    call = parse_glance(line, {tool.name: tool})
    if call is None:
        return None
    whole, part = (rule.applies is None or rule.applies(*call) for rule in rules)
    return True if whole else None if part else False


def compile_rule(text: str, tool: "Tool", configuration: "Configuration", settings: "Settings") -> "Rule":
    from mcp_server.model.policy import RuleKind, Rules, RuleText
    from mcp_server.policy.rules import compile_rules

    roots = (str(settings.workspace),)
    compiled = compile_rules(
        [RuleText(RuleKind.ALLOW, text, "")], {tool.name: tool}, configuration.policy.read_line, roots
    )
    if not isinstance(compiled, Rules):
        raise ViewError("; ".join(fault.message for fault in compiled))
    return compiled.every[0]
