"""Which rules hold for these tools? Every text compiled, or every fault with its place, and then no rule at all.

Compile again whenever the tools change: a rule speaks about the tools it was compiled for.

A name with wildcards does not speak about the meta-tools, which are how a model finds its way and reaches the person:
only the blocklist does, and rules that name one of them exactly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

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

STRENGTH = {kind: place for place, kind in enumerate(RuleKind)}


@dataclass(frozen=True, slots=True)
class RuleFault:
    source: str
    message: str


Key: TypeAlias = tuple[str | None, tuple[str, ...]] | None
"""What makes two conditions the same; None for a rule about every call."""


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A rule that can be read and can match, before it is compared with the others."""

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
    """`read` takes a line of shell apart. `roots` are the absolute paths under which the workspace is known: as it was
    named, and with links resolved."""
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


def _make_fault(text: RuleText, reason: str) -> RuleFault:
    return RuleFault(text.source, f"{text.kind} rule {quote_text(text.text)}: {reason}")


def _make_draft(text: RuleText, tools: Mapping[str, Tool], read: ReadLine, roots: Sequence[str]) -> RuleDraft:
    written = parse_rule(text.text)
    named = _find_named_tools(written.tool, text.kind, tools)
    _check_bracket(written, named)
    speaking = _find_able_tools(written, named)
    for predicate in written.predicates:
        _check_pattern(predicate, any(predicate.path[0] in tool.places for tool in speaking), roots)
    strange = [describe_unknown_value(tool.arguments, written.predicates) for tool in speaking]
    if strange and all(strange):
        raise MalformedRule(str(strange[0]))
    reasons = [describe_impossible_predicates(tool.arguments, written.predicates) for tool in speaking]
    if reasons and all(reasons):
        raise MalformedRule(f"it can never match: {reasons[0]}")
    kinds = {tool.subject[1] for tool in speaking if tool.subject}
    reaches = _is_about_paths(written, speaking, RuleSubject.PATH in kinds)
    applies = build_condition(written, text.kind is not RuleKind.ALLOW, read, kinds, roots)
    key = (written.specifier, tuple(sorted(map(repr, written.predicates)))) if applies else None
    word = (
        find_rule_word(written.specifier, kinds.pop(), read, roots)
        if applies and written.specifier and len(kinds) == 1
        else None
    )
    return RuleDraft(text, frozenset(tool.name for tool in speaking), applies, key, word, reaches)


def _is_about_paths(written: ParsedRule, tools: Sequence[Tool], path: bool) -> bool:
    """Does it name paths? One that says which path alone is right says nothing of what lies there."""
    if written.specifier is not None:
        return path and not is_match_all(written.specifier)
    about = [one for one in written.predicates if any(one.path[0] in tool.places for tool in tools)]
    return bool(about) and not any(one.op in (*OPPOSITE, PredicateOperator.EXISTS) for one in about)


def _check_bracket(written: ParsedRule, tools: Sequence[Tool]) -> None:
    """A predicate with a slip in it would be read as a text that no call has, and never be heard of again."""
    if written.specifier is None or written.literal or is_match_all(written.specifier):
        return
    # A server without such a rule does without what follows.
    from mcp_server.policy.foreign_syntax import describe_foreign_predicate
    from mcp_server.policy.rule_slips import describe_predicate_slip, describe_stray_part
    from mcp_server.policy.rule_spellings import describe_misspelling

    arguments = {name for tool in tools for name in tool.arguments.get("properties", {})}
    command = any(tool.subject and tool.subject[1] is RuleSubject.COMMAND for tool in tools)
    about = written.specifier, arguments, tuple(PredicateOperator), command
    if (
        wrong := describe_stray_part(*about)
        or describe_foreign_predicate(*about)
        or describe_misspelling(written.specifier, command)
        or describe_predicate_slip(*about)
    ):
        end = "" if wrong.endswith("?") else "."
        raise MalformedRule(f"{wrong}{end} If this is the text to match and no predicate, put it in quotes.")


def _check_pattern(predicate: Predicate, place: bool, roots: Sequence[str]) -> None:
    if predicate.op != "regex":
        return
    begun = predicate.value.removeprefix("^").replace("\\", "")
    if place and any(begun.startswith(start) for start in ("./", *(f"{root.rstrip('/')}/" for root in roots))):
        raise MalformedRule(
            "it can never match: a path in the workspace is compared as from there, such as `docs/a.md`."
        )
    import regex  # as in matching: few rules need it

    try:
        regex.compile(predicate.value)
    except regex.error as fault:
        raise MalformedRule(f"{quote_text(predicate.value)} is no regular expression: {fault}.") from None


def _find_named_tools(pattern: str, kind: RuleKind, tools: Mapping[str, Tool]) -> list[Tool]:
    wild = any(mark in pattern for mark in "*?[")
    fitting = [tool for tool in tools.values() if _is_called(tool, pattern, wild)]
    found = [tool for tool in fitting if not (wild and tool.meta) or kind is RuleKind.BLOCK]
    if found:
        return found
    if fitting:
        raise MalformedRule("only meta-tools have such a name, and they have to be named exactly.")
    near = find_nearest_name(pattern, [name for tool in tools.values() for name in (tool.name, tool.written) if name])
    raise MalformedRule(
        f"no tool is called {quote_text(pattern)}.{f' Did you mean {quote_text(near)}?' if near else ''}"
    )


def _is_called(tool: Tool, pattern: str, wild: bool) -> bool:
    names = (tool.name, tool.written) if tool.written else (tool.name,)
    return any(fnmatchcase(name, pattern) for name in names) if wild else pattern in names


def _find_able_tools(written: ParsedRule, tools: list[Tool]) -> list[Tool]:
    """Those among them that have what the condition asks about."""
    if written.specifier is not None and not is_match_all(written.specifier):
        found = [tool for tool in tools if tool.subject]
        if not found:
            name = quote_text(tools[0].name)
            raise MalformedRule(
                f"{name} has no argument that brackets like these speak about; write `path op value` in them."
            )
        return found
    missing = [
        (tool, one) for tool in tools for one in written.predicates if not find_schemas_at(tool.arguments, one.path)
    ]
    lacking = {tool.name for tool, _ in missing}
    found = [tool for tool in tools if tool.name not in lacking]
    if not found:
        guessed = (pair for pair in missing if _find_nearest_path(pair[0], pair[1].path))
        raise MalformedRule(_describe_missing_argument(*next(guessed, missing[0])))
    return found


def _describe_missing_argument(tool: Tool, predicate: Predicate) -> str:
    near = _find_nearest_path(tool, predicate.path)
    meant = f" Did you mean {quote_text(near)}?" if near else ""
    text = " If this is the text to match and no predicate, put it in quotes." if tool.subject else ""
    return f"{quote_text(tool.name)} takes no argument {quote_text(predicate.where)}.{meant}{text}"


def _find_nearest_path(tool: Tool, path: tuple[str, ...]) -> str | None:
    """The path with its first wrong name put right, as far as the schema knows names there."""
    for depth, name in enumerate(path):
        known = find_names_at(tool.arguments, path[:depth])
        if name not in known:
            near = find_nearest_name(name, known)
            return ".".join((*path[:depth], near, *path[depth + 1 :])) if near else None
    return None


def _find_shadowed_rules(drafts: Sequence[RuleDraft]) -> Iterator[tuple[RuleDraft, str]]:
    """Rules that change nothing, because a stronger or equal one always speaks first. Drafts come strongest first."""
    alike: dict[Key, list[tuple[int, RuleDraft]]] = {}
    for place, draft in enumerate(drafts):
        alike.setdefault(draft.key, []).append((place, draft))
    for place, draft in enumerate(drafts):
        rivals = alike[draft.key] + (alike.get(None, []) if draft.key else [])
        for other_place, other in rivals:
            if (
                other is not draft
                and _is_shadowing(other, draft)
                and not (_is_shadowing(draft, other) and place < other_place)
            ):
                rival = other.text
                yield (
                    draft,
                    f"it changes nothing beside the {rival.kind} rule {quote_text(rival.text)} ({rival.source}).",
                )
                break


def _is_shadowing(stronger: RuleDraft, weaker: RuleDraft) -> bool:
    """Is whatever the weaker rule could say already said? The stronger one's condition is the same, or none."""
    same = stronger.key is None or stronger.key == weaker.key
    return same and STRENGTH[stronger.text.kind] <= STRENGTH[weaker.text.kind] and stronger.tools >= weaker.tools


def _find_unmet_examples(draft: RuleDraft, tools: Mapping[str, Tool]) -> Iterator[str]:
    for example in draft.text.match:
        if not _is_example_matched(draft, example, tools):
            yield f"its example {quote_text(str(example))} does not match."
    for example in draft.text.not_match:
        if _is_example_matched(draft, example, tools):
            yield f"its example {quote_text(str(example))} matches, and should not."


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
