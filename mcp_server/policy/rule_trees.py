"""Which rules about paths apply to files that a call affects without naming them?

Moving a folder moves every file in it, and searching a folder reads what lies below it. Only rules that narrow are
checked; an allow rule is about the path that the call names.
"""

from collections.abc import Callable, Iterator, Sequence
from posixpath import normpath
from typing import TypeAlias

from mcp_server.model.policy import PathsBeneath, Policy, Rule, RuleKind
from mcp_server.model.tools import Arguments, Tool

MAX_ENTRIES = 20_000
"""Entries of a tree that are checked."""
NARROWING = (RuleKind.BLOCK, RuleKind.DENY, RuleKind.ASK)

ListTree: TypeAlias = Callable[[str, int], tuple[str, ...] | None]
"""The paths in a folder, relative to it; None if there are more than the limit."""


def has_tree_rules(tool: Tool, policy: Policy) -> bool:
    """True if some rule may apply to files that such a call affects. The tool is one that takes a tree."""
    return any(True for kind in NARROWING for _ in _list_tree_rules(tool, policy, kind))


def find_paths_beneath(
    tool: Tool, readings: Sequence[Arguments], policy: Policy, list_tree: ListTree
) -> tuple[PathsBeneath, ...]:
    """Find, for each kind of rule, the first rule that matches a path in the tree, and that path."""
    if not (tool.tree and has_tree_rules(tool, policy)):
        return ()
    matches: dict[RuleKind, PathsBeneath] = {}
    too_large: PathsBeneath | None = None
    for reading in readings:
        top = reading.get(tool.tree)
        names = list_tree(top, MAX_ENTRIES) if isinstance(top, str) else ()
        if names is None:
            too_large = PathsBeneath(None, normpath(str(top)))
        for kind in NARROWING:
            if kind not in matches and (match := _find_first_path(tool, reading, policy, kind, ("", *(names or ())))):
                matches[kind] = match
    return (*matches.values(), *([too_large] if too_large else []))


def _find_first_path(
    tool: Tool, reading: Arguments, policy: Policy, kind: RuleKind, names: Sequence[str]
) -> PathsBeneath | None:
    for rule, other, place in _list_tree_rules(tool, policy, kind):
        for name in names:
            inner_call = _build_inner_call(tool, reading, name)
            path = inner_call.get(place)
            arguments = inner_call if other is tool else {other.subject[0]: path} if other.subject else {}
            # The path that the call itself names is checked with the tool's other rules.
            if (name or other is not tool) and isinstance(path, str) and _is_rule_applicable(rule, other, arguments):
                return PathsBeneath(rule, normpath(path))
    return None


def _list_tree_rules(tool: Tool, policy: Policy, kind: RuleKind) -> Iterator[tuple[Rule, Tool, str]]:
    """Yield each rule that may apply, its tool, and the argument with the path to check."""
    yield from ((rule, tool, tool.tree) for rule in policy.rules.find_for_tool(tool.name, kind) if rule.reaches)
    for place, names in tool.counts_as.items():
        for other in (policy.tools[name] for name in names if name in policy.tools):
            yield from ((rule, other, place) for rule in policy.rules.find_for_tool(other.name, kind) if rule.reaches)


def _build_inner_call(tool: Tool, reading: Arguments, name: str) -> Arguments:
    """Return the arguments of the same call on one entry of the tree."""
    if not name:
        return reading
    places = {one: reading.get(one) for one in (tool.tree, tool.tree_to) if one}
    return {**reading, **{one: f"{path}/{name}" for one, path in places.items() if isinstance(path, str)}}


def _is_rule_applicable(rule: Rule, tool: Tool, arguments: Arguments) -> bool:
    try:
        return rule.applies is not None and rule.applies(tool, arguments)
    except Exception:  # a rule that fails narrows
        return True


def build_hidden_test(tool: Tool, readings: Sequence[Arguments], policy: Policy) -> Callable[[str], bool] | None:
    """Build the test for paths that the tool may not name, and so must not show either; None if no rule hides any.

    An `ask` rule that matched the call itself has been answered; what others ask about is hidden."""
    if tool.subject is None:
        return None
    argument = tool.subject[0]
    rules = [
        rule
        for kind in NARROWING
        for rule in policy.rules.find_for_tool(tool.name, kind)
        if rule.reaches and not (kind is RuleKind.ASK and any(_is_rule_applicable(rule, tool, one) for one in readings))
    ]
    if not rules:
        return None
    return lambda path: any(
        _is_rule_applicable(rule, tool, {**one, argument: path}) for rule in rules for one in readings
    )


def build_place_test(
    tool: Tool, readings: Sequence[Arguments], policy: Policy, waiver: str | None = None, argument: str = ""
) -> Callable[[str], bool] | None:
    """Build the test for where a path really leads, once it is open: True if a rule keeps that place from this call.

    The decision judged where the path led before. An `ask` rule that matched the call has been answered; an allow rule
    that spared the call a question (`waiver`) spares it for no other place. `argument` is the one with the path, if
    that is not the tool's first. None if no rule could matter.
    """
    argument = argument or (tool.places[0] if tool.places else "")
    rules = list(_list_unanswered_rules(tool, readings, policy, argument)) if argument else []
    allowed = policy.rules.find_for_tool(tool.name, RuleKind.ALLOW)
    waivers = [rule for rule in allowed if rule.text == waiver and rule.applies]
    if not argument or not (rules or waivers):
        return None

    def is_kept(path: str) -> bool:
        for rule, other in rules:
            if any(_is_rule_applicable(rule, other, _put_path(tool, other, one, argument, path)) for one in readings):
                return True
        here = [_put_path(tool, tool, one, argument, path) for one in readings]
        return bool(waivers) and not any(all(_is_allowed(rule, tool, one) for one in here) for rule in waivers)

    return is_kept


def _list_unanswered_rules(
    tool: Tool, readings: Sequence[Arguments], policy: Policy, argument: str
) -> Iterator[tuple[Rule, Tool]]:
    """Yield the rules that narrow what this argument may name, and the tools they are about; but no `ask` rule that
    matched the call, since it has been answered."""
    counted = [policy.tools[name] for name in tool.counts_as.get(argument, ()) if name in policy.tools]
    for other in (tool, *counted):
        calls = [_put_path(tool, other, one, argument, one.get(argument)) for one in readings]
        for kind in NARROWING:
            for rule in policy.rules.find_for_tool(other.name, kind):
                answered = kind is RuleKind.ASK and any(_is_rule_applicable(rule, other, call) for call in calls)
                if rule.reaches and not answered:
                    yield rule, other


def _put_path(tool: Tool, other: Tool, reading: Arguments, argument: str, path: object) -> Arguments:
    """Return the arguments of the call with another path; or those of the tool that it counts as."""
    if other is not tool:
        return {other.subject[0]: path} if other.subject else {}
    # The path is relative to the workspace, and so is not joined to the folder that the others are relative to.
    return {**{name: value for name, value in reading.items() if name != tool.base}, argument: path}


def _is_allowed(rule: Rule, tool: Tool, arguments: Arguments) -> bool:
    try:
        return rule.applies is not None and rule.applies(tool, arguments)
    except Exception:  # a rule that fails allows nothing
        return False
