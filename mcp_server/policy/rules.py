"""Which rules apply to which tools? Compiles all rules, or returns every fault and no rules at all.

Compile again whenever the tools change: a rule applies to the tools it was compiled for.

A name with wildcards does not match the meta-tools, by which a model finds its way and reaches the person. Only the
blocklist, and rules that name a meta-tool exactly, apply to them.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from msgspec import Struct

from mcp_server.model.policy import Rule, RuleKind, Rules, RuleText
from mcp_server.model.shell import ReadLine
from mcp_server.model.text import find_nearest_name, quote_text
from mcp_server.model.tools import Arguments, RuleSubject, Tool
from mcp_server.policy.globs import Impossible
from mcp_server.policy.paths import OPPOSITE
from mcp_server.policy.rule_match import Condition, build_condition, find_rule_word, is_match_all
from mcp_server.policy.rule_reach import (
    describe_impossible_predicates,
    describe_unknown_value,
    find_names_at,
    find_schemas_at,
)
from mcp_server.policy.rule_syntax import MalformedRule, ParsedRule, Predicate, PredicateOperator, parse_rule

QUOTE_IT = "If you mean this text literally, put it in quotes."
STRENGTH = {kind: place for place, kind in enumerate(RuleKind)}


class RuleFault(Struct, frozen=True):
    source: str
    message: str


Key: TypeAlias = tuple[str | None, tuple[str, ...]] | None
"""Equal for equal conditions; None for a rule about every call."""


class RuleDraft(Struct, frozen=True):
    """A rule that is valid and can match, before it is compared with the others."""

    text: RuleText
    tools: frozenset[str]
    applies: Condition | None
    key: Key
    word: str | None
    reaches: bool

    @property
    def rule(self) -> Rule:
        text = self.text
        names = self.tools.__contains__
        return Rule(text.kind, text.text, text.source, names, self.applies, self.word, text.reason, self.reaches)


def compile_rules(
    texts: Sequence[RuleText], tools: Mapping[str, Tool], read: ReadLine, roots: Sequence[str] = ()
) -> Rules | tuple[RuleFault, ...]:
    """`read` parses a shell line. `roots` are the workspace's absolute paths: as given, and with links resolved."""
    drafts: list[RuleDraft] = []
    faults: list[RuleFault] = []
    for text in sorted(texts, key=lambda text: STRENGTH[text.kind]):
        try:
            drafts.append(_make_draft(text, tools, read, roots))
        except (MalformedRule, Impossible) as reason:
            faults.append(_make_fault(text, str(reason)))
    faults += [_make_fault(draft.text, reason) for draft, reason in _find_shadowed_rules(drafts)]
    faults += [_make_fault(draft.text, reason) for draft in drafts for reason in _find_unmet_examples(draft, tools)]
    return tuple(faults) if faults else Rules(tuple(draft.rule for draft in drafts))


def compile_mounted_rules(
    texts: Sequence[RuleText], tools: Mapping[str, Tool], read: ReadLine, roots: Sequence[str]
) -> tuple[Rules, Mapping[str, str]]:
    """Compile valid rules for tools that change while the server runs: those of other servers, besides our own.

    A rule may name a tool that does not exist at the moment. One that narrows and cannot be applied to a tool bars that
    tool; these are returned with the reasons."""
    rules: list[Rule] = []
    barred: dict[str, str] = {}
    for text in texts:
        try:
            rules.append(_make_draft(text, tools, read, roots).rule)
        except (MalformedRule, Impossible) as reason:
            if text.kind is not RuleKind.ALLOW:
                message = f"the {text.kind} rule {quote_text(text.text)} cannot be applied to it: {reason}"
                barred |= dict.fromkeys(find_mounted_tools(text.text, tools), message)
    return Rules(tuple(rules)), barred


def find_mounted_tools(text: str, tools: Mapping[str, Tool]) -> list[str]:
    """Find the tools of other servers that a rule names."""
    pattern = parse_rule(text).tool
    wild = any(mark in pattern for mark in "*?[")
    return [tool.name for tool in tools.values() if tool.written and _is_called(tool, pattern, wild)]


def find_rule_server(text: str) -> str | None:
    """Return the server that a rule names, which may have wildcards; None if it names none, or is not valid."""
    try:
        server, colon, _ = parse_rule(text).tool.partition(":")
    except MalformedRule:
        return None
    return server if colon else None


def _make_fault(text: RuleText, reason: str) -> RuleFault:
    return RuleFault(text.source, f"{text.kind} rule {quote_text(text.text)}: {reason}")


def _make_draft(text: RuleText, tools: Mapping[str, Tool], read: ReadLine, roots: Sequence[str]) -> RuleDraft:
    parsed = parse_rule(text.text)
    named_tools = _find_named_tools(parsed.tool, text.kind, tools)
    _check_bracket(parsed, named_tools)
    able_tools = _find_able_tools(parsed, named_tools)
    for predicate in parsed.predicates:
        _check_pattern(predicate, any(predicate.path[0] in tool.places for tool in able_tools), roots)
    unknown_values = [describe_unknown_value(tool.arguments, parsed.predicates) for tool in able_tools]
    if unknown_values and all(unknown_values):
        raise MalformedRule(str(unknown_values[0]))
    reasons = [describe_impossible_predicates(tool.arguments, parsed.predicates) for tool in able_tools]
    if reasons and all(reasons):
        raise MalformedRule(f"it can never match: {reasons[0]}")
    kinds = {tool.subject[1] for tool in able_tools if tool.subject}
    reaches = _is_about_paths(parsed, able_tools, RuleSubject.PATH in kinds)
    applies = build_condition(parsed, text.kind is not RuleKind.ALLOW, read, kinds, roots)
    key = (parsed.specifier, tuple(sorted(map(repr, (*parsed.predicates, parsed.alone))))) if applies else None
    word = (
        find_rule_word(parsed.specifier, kinds.pop(), read, roots)
        if applies and parsed.specifier and len(kinds) == 1
        else None
    )
    return RuleDraft(text, frozenset(tool.name for tool in able_tools), applies, key, word, reaches)


def _is_about_paths(parsed: ParsedRule, tools: Sequence[Tool], path: bool) -> bool:
    """True if the rule names paths. `neq` and `not_in` name the one path they are not about."""
    if parsed.specifier is not None:
        return path and not is_match_all(parsed.specifier)
    path_predicates = [one for one in parsed.predicates if any(one.path[0] in tool.places for tool in tools)]
    return bool(path_predicates) and not any(one.op in (*OPPOSITE, PredicateOperator.EXISTS) for one in path_predicates)


def _check_bracket(parsed: ParsedRule, tools: Sequence[Tool]) -> None:
    """Find a mistyped predicate, which would otherwise be taken for text that no call ever matches."""
    if parsed.specifier is None or parsed.literal or is_match_all(parsed.specifier):
        return
    # Imported here, because a server without such a rule needs none of it.
    from mcp_server.policy.foreign_syntax import describe_foreign_predicate
    from mcp_server.policy.rule_slips import describe_predicate_slip, describe_stray_part
    from mcp_server.policy.rule_spellings import describe_misspelling

    arguments = {name for tool in tools for name in tool.arguments.get("properties", {})}
    command = any(tool.subject and tool.subject[1] is RuleSubject.COMMAND for tool in tools)
    context = parsed.specifier, arguments, tuple(PredicateOperator), command
    if (
        fault := describe_stray_part(*context)
        or describe_foreign_predicate(*context)
        or describe_misspelling(parsed.specifier, command)
        or describe_predicate_slip(*context)
    ):
        raise MalformedRule(f"{fault}{'' if fault.endswith('?') else '.'} {QUOTE_IT}")


def _check_pattern(predicate: Predicate, place: bool, roots: Sequence[str]) -> None:
    if predicate.op != "regex":
        return
    beginning = predicate.value.removeprefix("^").replace("\\", "")
    if place and beginning.startswith(("./", *(f"{root.rstrip('/')}/" for root in roots))):
        raise MalformedRule(
            "it can never match: a path in the workspace is compared relative to it, such as `docs/a.md`."
        )
    import regex  # imported here, because few rules need it

    try:
        regex.compile(predicate.value)
    except regex.error as fault:
        raise MalformedRule(f"{quote_text(predicate.value)} is not a regular expression: {fault}.") from None


def _find_named_tools(pattern: str, kind: RuleKind, tools: Mapping[str, Tool]) -> list[Tool]:
    wild = any(mark in pattern for mark in "*?[")
    matches = [tool for tool in tools.values() if _is_called(tool, pattern, wild)]
    if kind is RuleKind.ALLOW and wild and ":" not in pattern:
        # `git_*` means menugate's own tools, and must not allow those of a server that calls itself `git`.
        matches = [tool for tool in matches if tool.written is None]
    named_tools = [tool for tool in matches if not (wild and tool.meta) or kind is RuleKind.BLOCK]
    if named_tools:
        return named_tools
    if matches:
        raise MalformedRule("only meta-tools match, and wildcards do not apply to them; write the exact name.")
    near = find_nearest_name(pattern, [name for tool in tools.values() for name in (tool.name, tool.written) if name])
    hint = f" Did you mean {quote_text(near)}?" if near else ""
    raise MalformedRule(f"there is no tool {quote_text(pattern)}.{hint}")


def _is_called(tool: Tool, pattern: str, wild: bool) -> bool:
    names = (tool.name, tool.written) if tool.written else (tool.name,)
    return any(fnmatchcase(name, pattern) for name in names) if wild else pattern in names


def _find_able_tools(parsed: ParsedRule, tools: list[Tool]) -> list[Tool]:
    """Return the tools that have the arguments that the condition is about."""
    if parsed.specifier is not None and not is_match_all(parsed.specifier):
        able_tools = [tool for tool in tools if tool.subject]
        if not able_tools:
            name = quote_text(tools[0].name)
            raise MalformedRule(f"{name} has no main argument to match; write a predicate, `path op value`.")
        return able_tools
    missing = [
        (tool, one) for tool in tools for one in parsed.predicates if not find_schemas_at(tool.arguments, one.path)
    ]
    unable = {tool.name for tool, _ in missing}
    able_tools = [tool for tool in tools if tool.name not in unable]
    if not able_tools:
        guesses = (pair for pair in missing if _find_nearest_path(pair[0], pair[1].path))
        raise MalformedRule(_describe_missing_argument(*next(guesses, missing[0])))
    return able_tools


def _describe_missing_argument(tool: Tool, predicate: Predicate) -> str:
    near = _find_nearest_path(tool, predicate.path)
    hint = f" Did you mean {quote_text(near)}?" if near else ""
    quote_it = f" {QUOTE_IT}" if tool.subject else ""
    return f"{quote_text(tool.name)} has no argument {quote_text(predicate.where)}.{hint}{quote_it}"


def _find_nearest_path(tool: Tool, path: tuple[str, ...]) -> str | None:
    """Return the path with its first wrong name corrected, as far as the schema lists the names there."""
    for depth, name in enumerate(path):
        known = find_names_at(tool.arguments, path[:depth])
        if name not in known:
            near = find_nearest_name(name, known)
            return ".".join((*path[:depth], near, *path[depth + 1 :])) if near else None
    return None


def _find_shadowed_rules(drafts: Sequence[RuleDraft]) -> Iterator[tuple[RuleDraft, str]]:
    """Find rules that change nothing, because a stronger or equal one always wins. Drafts come strongest first."""
    by_condition: dict[Key, list[tuple[int, RuleDraft]]] = {}
    for place, draft in enumerate(drafts):
        by_condition.setdefault(draft.key, []).append((place, draft))
    for place, draft in enumerate(drafts):
        rivals = by_condition[draft.key] + (by_condition.get(None, []) if draft.key else [])
        for other_place, other in rivals:
            if (
                other is not draft
                and _is_shadowing(other, draft)
                and not (_is_shadowing(draft, other) and place < other_place)
            ):
                rival = f"the {other.text.kind} rule {quote_text(other.text.text)} ({other.text.source})"
                yield draft, f"it has no effect, because {rival} always applies first."
                break


def _is_shadowing(stronger: RuleDraft, weaker: RuleDraft) -> bool:
    """True if the weaker rule never decides: the stronger one has the same condition or none, and all its tools."""
    same = stronger.key is None or stronger.key == weaker.key
    return same and STRENGTH[stronger.text.kind] <= STRENGTH[weaker.text.kind] and stronger.tools >= weaker.tools


def _find_unmet_examples(draft: RuleDraft, tools: Mapping[str, Tool]) -> Iterator[str]:
    for example in draft.text.match:
        if not _is_example_matched(draft, example, tools):
            yield f"its `match` example {quote_text(str(example))} does not match."
    for example in draft.text.not_match:
        if _is_example_matched(draft, example, tools):
            yield f"its `not_match` example {quote_text(str(example))} matches."


def _is_example_matched(draft: RuleDraft, example: str | Arguments, tools: Mapping[str, Tool]) -> bool:
    if draft.applies is None and isinstance(example, str):
        return example in draft.tools or any(tools[name].written == example for name in draft.tools)
    for name in sorted(draft.tools):
        tool = tools[name]
        short = {tool.subject[0]: example} if tool.subject else {}
        arguments = short if isinstance(example, str) else example
        if draft.applies is None or draft.applies(tool, arguments):
            return True
    return False
