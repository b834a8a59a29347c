"""`menugate rules`: which rules hold here, and do they say what they are meant to say?"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import print_json, print_table, say
from mcp_server.cli.parser import (
    CommandGroup,
    MixedParser,
    add_json,
    add_place,
    load_valid_configuration,
    settings_from_arguments,
)
from mcp_server.cli.servers import add_server, load_judgement, note_servers

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.policy import Rule, RuleText
    from mcp_server.model.tools import Arguments, Tool

EXAMPLES = """
menugate rules list                 every rule that holds here, with its place
menugate rules test                 run every match and not_match example, and say which rule decides each
menugate rules test --config new.yaml    before that file is put into use
"""
LIST = """
menugate rules list           the operator's rules and the workspace's, and which of those are set aside
menugate rules list --json    for a program
"""
TEST = """
menugate rules test           each example, the rule it belongs to, and the rule that decides such a call
menugate rules test --json    for a program; exits 1 where an example does not do what it says
"""
COLOURS = {"block": "red", "deny": "red", "ask": "yellow", "allow": "green"}


def add(commands: CommandGroup) -> None:
    one = commands.add("rules", "list the rules that hold here, and try them on their examples", EXAMPLES, None)
    deeds = CommandGroup(
        one.add_subparsers(title="what to do", metavar="DEED", required=True, parser_class=MixedParser).add_parser
    )
    listing = deeds.add("list", "show every rule with its place, and whose it is", LIST, run_list)
    test = deeds.add("test", "try every rule on its examples, and say which rule decides each", TEST, run_test)
    for deed in (listing, test):
        add_place(deed)
        add_json(deed)
    add_server(listing)


@dataclass(frozen=True, slots=True)
class HeldRule:
    """A rule as it was written, and whether it counts."""

    text: "RuleText"
    whose: str
    counts: bool


def collect_rules(found: "Configuration") -> list[HeldRule]:
    operators = [HeldRule(text, "operator", True) for text in found.library.config.rules]
    widening = set(found.own.widening_rules)
    return operators + [HeldRule(text, "workspace", found.trusted or text not in widening) for text in found.own.rules]


def run_list(arguments: argparse.Namespace) -> int:
    judged = load_judgement(arguments, strict=True)
    found = judged.law
    rules = collect_rules(found)
    if arguments.json:
        print_json([{**rule_to_json(one.text), "whose": one.whose, "counts": one.counts} for one in rules])
        return 0
    note_servers(judged)
    if not rules:
        say("There are no rules; docs/rules.md shows how they are written.")
        return 0
    rows = [
        (str(one.text.kind), one.text.text, one.whose if one.counts else "set aside", one.text.source) for one in rules
    ]
    print_table(rows, head=("list", "rule", "whose", "written in"), paint=COLOURS)
    if any(not one.counts for one in rules):
        say("\nWhat is set aside counts once you trust this folder: menugate trust --show")
    return 0


def rule_to_json(text: "RuleText") -> dict[str, Any]:
    return {"kind": text.kind, "rule": text.text, "source": text.source, "reason": text.reason or None}


@dataclass(frozen=True, slots=True)
class TriedExample:
    """One example of one rule, and what would be decided about such a call."""

    rule: "RuleText"
    example: "str | Arguments"
    tool: str | None
    """None where the example names a tool, and no call."""
    expected: bool
    matches: bool
    decided_by: "Rule | None"

    @property
    def holds(self) -> bool:
        return self.expected == self.matches


def run_test(arguments: argparse.Namespace) -> int:
    found = load_valid_configuration(arguments, settings_from_arguments(arguments))
    tried = [one for rule in collect_rules(found) if rule.counts for one in try_examples(rule.text, found)]
    failed = [one for one in tried if not one.holds]
    if arguments.json:
        print_json({"ok": not failed, "examples": [example_to_json(one) for one in tried]})
    else:
        show_tried_examples(tried, len(collect_rules(found)))
    return 1 if failed else 0


def try_examples(text: "RuleText", found: "Configuration") -> Iterator[TriedExample]:
    from mcp_server.model.policy import Rules
    from mcp_server.policy.rules import compile_rules

    alone = compile_rules([text], found.policy.tools, found.policy.read_line)
    if not isinstance(alone, Rules):
        return
    (rule,) = alone.every
    for expected, examples in ((True, text.match), (False, text.not_match)):
        for example in examples:
            yield try_example(text, rule, example, expected, found)


def try_example(
    text: "RuleText", rule: "Rule", example: "str | Arguments", expected: bool, found: "Configuration"
) -> TriedExample:
    """The tools that the rule speaks about are tried in turn; the first for which it does what is expected counts."""
    named = [tool for name, tool in found.policy.tools.items() if rule.names(name)]
    if rule.applies is None and isinstance(example, str):
        spoken = found.policy.tools.get(example)
        matches = any(example in (tool.name, tool.written) for tool in named)
        return TriedExample(
            text, example, None, expected, matches, find_deciding_rule(spoken, None, found) if spoken else None
        )
    for tool in named:
        call = build_example_call(tool, example)
        matches = rule.applies is None or rule.applies(tool, call)
        if matches == expected:
            return TriedExample(text, example, tool.name, expected, matches, find_deciding_rule(tool, call, found))
    first = named[0]
    return TriedExample(
        text,
        example,
        first.name,
        expected,
        not expected,
        find_deciding_rule(first, build_example_call(first, example), found),
    )


def build_example_call(tool: "Tool", example: "str | Arguments") -> "Arguments":
    """The call that an example stands for: in short it is the value of the tool's subject."""
    if not isinstance(example, str):
        return example
    return {tool.subject[0]: example} if tool.subject else {}


def find_deciding_rule(tool: "Tool", call: "Arguments | None", found: "Configuration") -> "Rule | None":
    """The strongest rule that speaks about the call, among all that count; None where none does."""
    from mcp_server.model.policy import RuleKind

    for kind in RuleKind:
        for rule in found.policy.rules.find_for_tool(tool.name, kind):
            if rule.applies is None or (call is not None and rule.applies(tool, call)):
                return rule
    return None


def show_tried_examples(tried: list[TriedExample], rules: int) -> None:
    failed = [one for one in tried if not one.holds]
    for one in tried:
        sign = ("holds", "green") if one.holds else ("fails", "red")
        word = "matches" if one.matches else "does not match"
        by = one.decided_by
        decides = f"{by.kind}: {by.text}  ({by.source})" if by else "no rule speaks about it"
        say(sign, f"  {one.rule.kind} {one.rule.text}  {word}  {format_example(one)}")
        say((f"       decided by {decides}", "dim"))
    without = rules - len({(one.rule.kind, one.rule.text, one.rule.source) for one in tried})
    say(f"{len(tried)} examples of {rules} rules: {len(failed) or 'none'} failed; {without} rules have no example.")


def format_example(one: TriedExample) -> str:
    import json

    example = one.example if isinstance(one.example, str) else json.dumps(dict(one.example))
    return f"{one.tool}({example})" if one.tool else example


def example_to_json(one: TriedExample) -> dict[str, Any]:
    by = one.decided_by
    return {
        **rule_to_json(one.rule),
        "example": one.example,
        "tool": one.tool,
        "expected": "match" if one.expected else "no match",
        "holds": one.holds,
        "decided_by": {"kind": by.kind, "rule": by.text, "source": by.source} if by else None,
    }
