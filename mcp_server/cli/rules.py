"""`menugate rules`: which rules are in force here, and do they work as intended?"""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_server.cli.output import print_json, print_table, say, say_prose
from mcp_server.cli.parser import (
    CommandGroup,
    add_actions,
    add_json,
    add_place,
    load_valid_configuration,
    settings_from_arguments,
)
from mcp_server.cli.servers import add_server, load_judgement, note_servers
from mcp_server.model.text import format_count

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.policy import Rule, RuleText
    from mcp_server.model.tools import Arguments, Tool

EXAMPLES = """
menugate rules                           every rule in force, and where it is written
menugate rules test                      try every example, and show which rule decides it
menugate rules test --config new.yaml    test a configuration before you use it
"""
LIST = """
menugate rules list           every rule, including those of the workspace that do not apply yet
menugate rules list --json    for a program
"""
TEST = """
menugate rules test           each example, its rule and the rule that decides the call
menugate rules test --json    for a program; exits 1 if an example fails
"""
COLOURS = {"block": "red", "deny": "red", "ask": "yellow", "allow": "green"}


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("rules", EXAMPLES, None))
    listing = actions.add("list", LIST, run_list, "list every rule, who wrote it and where")
    test = actions.add("test", TEST, run_test, "try every rule on its examples, and show which rule decides each")
    for action in (listing, test):
        add_place(action)
        add_json(action)
    add_server(listing)


class ListedRule(Struct, frozen=True):
    """A rule as written, and whether it applies."""

    text: "RuleText"
    whose: str
    counts: bool


def collect_rules(configuration: "Configuration") -> list[ListedRule]:
    operators = [ListedRule(text, "operator", True) for text in configuration.library.config.rules]
    widening_rules = set(configuration.own.widening_rules)
    return operators + [
        ListedRule(text, "workspace", configuration.trusted or text not in widening_rules)
        for text in configuration.own.rules
    ]


def run_list(arguments: argparse.Namespace) -> int:
    judgement = load_judgement(arguments, strict=True)
    configuration = judgement.configuration
    rules = collect_rules(configuration)
    if arguments.json:
        print_json([{**rule_to_json(rule.text), "whose": rule.whose, "counts": rule.counts} for rule in rules])
        return 0
    note_servers(judgement)
    if not rules:
        say("No rules; docs/rules.md shows how to write them.")
        return 0
    rows = [
        (str(rule.text.kind), rule.text.text, rule.whose if rule.counts else "set aside", rule.text.source)
        for rule in rules
    ]
    print_table(rows, head=("list", "rule", "whose", "written in"), paint=COLOURS)
    if any(not rule.counts for rule in rules):
        say()
        say_prose("Rules that are set aside apply once you trust this folder; see `menugate trust --show`.")
    return 0


def rule_to_json(text: "RuleText") -> dict[str, Any]:
    return {"kind": text.kind, "rule": text.text, "source": text.source, "reason": text.reason or None}


class TriedExample(Struct, frozen=True):
    """One example of a rule, and what decides such a call."""

    rule: "RuleText"
    example: "str | Arguments"
    tool: str | None
    """None if the example names only a tool."""
    expected: bool
    matches: bool
    decided_by: "Rule | None"

    @property
    def holds(self) -> bool:
        return self.expected == self.matches


def run_test(arguments: argparse.Namespace) -> int:
    configuration = load_valid_configuration(arguments, settings_from_arguments(arguments))
    examples = [
        example
        for rule in collect_rules(configuration)
        if rule.counts
        for example in try_examples(rule.text, configuration)
    ]
    failures = [example for example in examples if not example.holds]
    if arguments.json:
        print_json({"ok": not failures, "examples": [example_to_json(example) for example in examples]})
    else:
        show_tried_examples(examples, len(collect_rules(configuration)))
    return 1 if failures else 0


def try_examples(text: "RuleText", configuration: "Configuration") -> Iterator[TriedExample]:
    from mcp_server.model.policy import Rules
    from mcp_server.policy.rules import compile_rules

    compiled = compile_rules([text], configuration.policy.tools, configuration.policy.read_line)
    if not isinstance(compiled, Rules):
        return
    (rule,) = compiled.every
    for expected, examples in ((True, text.match), (False, text.not_match)):
        for example in examples:
            yield try_example(text, rule, example, expected, configuration)


def try_example(
    text: "RuleText", rule: "Rule", example: "str | Arguments", expected: bool, configuration: "Configuration"
) -> TriedExample:
    """Try the rule's tools in turn, and return the first with the expected result."""
    tools = [tool for name, tool in configuration.policy.tools.items() if rule.names(name)]
    if rule.applies is None and isinstance(example, str):
        named_tool = configuration.policy.tools.get(example)
        matches = any(example in (tool.name, tool.written) for tool in tools)
        return TriedExample(
            text,
            example,
            None,
            expected,
            matches,
            find_deciding_rule(named_tool, None, configuration) if named_tool else None,
        )
    for tool in tools:
        call = build_example_call(tool, example)
        matches = rule.applies is None or rule.applies(tool, call)
        if matches == expected:
            return TriedExample(
                text, example, tool.name, expected, matches, find_deciding_rule(tool, call, configuration)
            )
    first_tool = tools[0]
    return TriedExample(
        text,
        example,
        first_tool.name,
        expected,
        not expected,
        find_deciding_rule(first_tool, build_example_call(first_tool, example), configuration),
    )


def build_example_call(tool: "Tool", example: "str | Arguments") -> "Arguments":
    """Build the call that an example stands for; plain text is the value of the tool's subject."""
    if not isinstance(example, str):
        return example
    return {tool.subject[0]: example} if tool.subject else {}


def find_deciding_rule(tool: "Tool", call: "Arguments | None", configuration: "Configuration") -> "Rule | None":
    """Find the strictest applicable rule about the call; None if there is none."""
    from mcp_server.model.policy import RuleKind

    for kind in RuleKind:
        for rule in configuration.policy.rules.find_for_tool(tool.name, kind):
            if rule.applies is None or (call is not None and rule.applies(tool, call)):
                return rule
    return None


def show_tried_examples(examples: list[TriedExample], rules: int) -> None:
    failures = [example for example in examples if not example.holds]
    for example in examples:
        outcome = ("holds", "green") if example.holds else ("fails", "red")
        word = "matches" if example.matches else "does not match"
        deciding_rule = example.decided_by
        decides = (
            f"{deciding_rule.kind}: {deciding_rule.text}  ({deciding_rule.source})" if deciding_rule else "no rule"
        )
        say(outcome, f"  {example.rule.kind} {example.rule.text}  {word}  {format_example(example)}")
        say((f"       decided by {decides}", "dim"))
    untested = rules - len({(example.rule.kind, example.rule.text, example.rule.source) for example in examples})
    counted = f"{format_count(len(examples), 'example')} of {format_count(rules, 'rule')}"
    untested_text = f"{format_count(untested, 'rule')} {'has' if untested == 1 else 'have'} no example"
    say_prose(f"{counted}: {len(failures) or 'none'} failed; {untested_text}.")


def format_example(tried: TriedExample) -> str:
    import json

    example = tried.example if isinstance(tried.example, str) else json.dumps(dict(tried.example))
    return f"{tried.tool}({example})" if tried.tool else example


def example_to_json(tried: TriedExample) -> dict[str, Any]:
    deciding_rule = tried.decided_by
    return {
        **rule_to_json(tried.rule),
        "example": tried.example,
        "tool": tried.tool,
        "expected": "match" if tried.expected else "no match",
        "holds": tried.holds,
        "decided_by": {"kind": deciding_rule.kind, "rule": deciding_rule.text, "source": deciding_rule.source}
        if deciding_rule
        else None,
    }
