"""`menugate rules`: which rules are in force here, and do they do what they should?"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
menugate rules list                      every rule in force, and where it is written
menugate rules test                      try every example, and show which rule decides it
menugate rules test --config new.yaml    a configuration, before you use it
"""
LIST = """
menugate rules list           the operator's rules, and the workspace's with those that do not count yet
menugate rules list --json    for a program
"""
TEST = """
menugate rules test           each example, its rule, and the rule that decides such a call
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


@dataclass(frozen=True, slots=True)
class HeldRule:
    """A rule as written, and whether it counts."""

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
        say("No rules; docs/rules.md shows how to write them.")
        return 0
    rows = [
        (str(one.text.kind), one.text.text, one.whose if one.counts else "set aside", one.text.source) for one in rules
    ]
    print_table(rows, head=("list", "rule", "whose", "written in"), paint=COLOURS)
    if any(not one.counts for one in rules):
        say()
        say_prose("Rules that are set aside count once you trust this folder; see `menugate trust --show`.")
    return 0


def rule_to_json(text: "RuleText") -> dict[str, Any]:
    return {"kind": text.kind, "rule": text.text, "source": text.source, "reason": text.reason or None}


@dataclass(frozen=True, slots=True)
class TriedExample:
    """One example of one rule, and what would be decided about such a call."""

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
    """Try the tools that the rule names in turn; the first for which it does what is expected counts."""
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
    """The call that an example stands for; a plain text is the value of the tool's subject."""
    if not isinstance(example, str):
        return example
    return {tool.subject[0]: example} if tool.subject else {}


def find_deciding_rule(tool: "Tool", call: "Arguments | None", found: "Configuration") -> "Rule | None":
    """The strongest rule about the call, among those that count; None if there is none."""
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
        decides = f"{by.kind}: {by.text}  ({by.source})" if by else "no rule"
        say(sign, f"  {one.rule.kind} {one.rule.text}  {word}  {format_example(one)}")
        say((f"       decided by {decides}", "dim"))
    without = rules - len({(one.rule.kind, one.rule.text, one.rule.source) for one in tried})
    counted = f"{format_count(len(tried), 'example')} of {format_count(rules, 'rule')}"
    bare = f"{format_count(without, 'rule')} {'has' if without == 1 else 'have'} no example"
    say_prose(f"{counted}: {len(failed) or 'none'} failed; {bare}.")


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
