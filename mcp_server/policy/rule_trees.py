"""What do rules about paths say of what a call takes along, or comes across, without naming it?

Who moves a folder moves every file in it, and who searches a folder sees what lies below. Only rules that narrow are
asked: what is allowed is allowed by the name that the call gives.
"""

from collections.abc import Callable, Iterator, Sequence
from posixpath import normpath
from typing import TypeAlias

from mcp_server.model.policy import PathsBeneath, Policy, Rule, RuleKind
from mcp_server.model.tools import Arguments, Tool

MOST = 20_000
"""Entries of a tree that are looked through."""
NARROWING = (RuleKind.BLOCK, RuleKind.DENY, RuleKind.ASK)

Holds: TypeAlias = Callable[[str, int], tuple[str, ...] | None]
"""What lies in a folder, by its path there; None where that is more than so many entries."""


def has_tree_rules(tool: Tool, policy: Policy) -> bool:
    """Is there any rule to ask about what a call takes along? Asked of tools that take a tree."""
    return any(True for kind in NARROWING for _ in _list_asked_rules(tool, policy, kind))


def find_paths_beneath(
    tool: Tool, readings: Sequence[Arguments], policy: Policy, holds: Holds
) -> tuple[PathsBeneath, ...]:
    """For each list the first rule that speaks about something in the tree, and what that is."""
    if not (tool.tree and has_tree_rules(tool, policy)):
        return ()
    found: dict[RuleKind, PathsBeneath] = {}
    large: PathsBeneath | None = None
    for reading in readings:
        top = reading.get(tool.tree)
        names = holds(top, MOST) if isinstance(top, str) else ()
        if names is None:
            large = PathsBeneath(None, normpath(str(top)))
        for kind in NARROWING:
            if kind not in found and (one := _find_first_path(tool, reading, policy, kind, ("", *(names or ())))):
                found[kind] = one
    return (*found.values(), *([large] if large else []))


def _find_first_path(
    tool: Tool, reading: Arguments, policy: Policy, kind: RuleKind, names: Sequence[str]
) -> PathsBeneath | None:
    for rule, other, place in _list_asked_rules(tool, policy, kind):
        for name in names:
            taken = _build_inner_call(tool, reading, name)
            path = taken.get(place)
            about = taken if other is tool else {other.subject[0]: path} if other.subject else {}
            # What the call itself names is asked about where its own rules are.
            if (name or other is not tool) and isinstance(path, str) and _is_rule_applicable(rule, other, about):
                return PathsBeneath(rule, normpath(path))
    return None


def _list_asked_rules(tool: Tool, policy: Policy, kind: RuleKind) -> Iterator[tuple[Rule, Tool, str]]:
    """Each rule that could, the tool that it is about, and the argument whose place it is asked about."""
    yield from ((rule, tool, tool.tree) for rule in policy.rules.find_for_tool(tool.name, kind) if rule.reaches)
    for place, names in tool.counts_as.items():
        for other in (policy.tools[name] for name in names if name in policy.tools):
            yield from ((rule, other, place) for rule in policy.rules.find_for_tool(other.name, kind) if rule.reaches)


def _build_inner_call(tool: Tool, reading: Arguments, name: str) -> Arguments:
    """The call as it is for one thing in the tree."""
    if not name:
        return reading
    places = {one: reading.get(one) for one in (tool.tree, tool.tree_to) if one}
    return {**reading, **{one: f"{path}/{name}" for one, path in places.items() if isinstance(path, str)}}


def _is_rule_applicable(rule: Rule, tool: Tool, arguments: Arguments) -> bool:
    try:
        return rule.applies is not None and rule.applies(tool, arguments)
    except Exception:  # a rule that cannot be judged narrows
        return True


def build_hidden_test(tool: Tool, readings: Sequence[Arguments], policy: Policy) -> Callable[[str], bool] | None:
    """Whether a path is one that this tool may not name, and so does not show either; None where no rule says so.

    An `ask` rule that spoke about the call itself was answered; what others ask about is not shown unasked."""
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
