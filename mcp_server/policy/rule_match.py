"""Does a rule's condition hold for these arguments?

Every call gets an answer. If the condition cannot be decided (a string where a number is compared, a regex that takes
too long, a command that cannot be parsed), a rule that narrows (block, deny, ask: `cautious`) holds and an allow rule
does not.

- A missing argument has the schema's default. Without one it does not exist, and equals, contains and exceeds nothing;
  `neq` and `not_in` then hold for a rule that narrows.
- A path through a list is about its elements: for a rule that narrows one match is enough, for an allow rule all must
  match.
- Specifiers, `glob` and `regex` ignore case in a rule that narrows, because some disks do; an allow rule is exact.
  `eq`, `in` and `contains` are exact except about paths.
- `and nothing else` fails if the call gives an argument that no predicate is about, unless that has its default or is
  one that the tool declares incidental.
- An argument that names paths is normalized before any predicate sees it; if it is missing, it means the workspace to
  a rule that narrows.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from mcp_server.model.shell import ReadLine, get_program_name
from mcp_server.model.tools import Arguments, RuleSubject, Tool
from mcp_server.policy.globs import LONGEST, Path, Text, compile_path_glob, compile_text_glob, split_path
from mcp_server.policy.paths import Test, build_place_test
from mcp_server.policy.rule_syntax import ParsedRule, Predicate, PredicateOperator
from mcp_server.policy.rule_urls import compile_url_pattern
from mcp_server.policy.shell import compile_command_pattern, find_pattern_program, list_commands

# An index of rules by word: a specifier with a literal name in it matches only calls with that name, as the program of
# a command or along a path. So of a thousand rules about one tool, only the few that could match are tested.

WILD = frozenset("$*?[{")


def normalize_word(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def find_rule_word(specifier: str, kind: RuleSubject, read: ReadLine, roots: Sequence[str] = ()) -> str | None:
    """Find a name that every call must contain to match the specifier; None if there is none."""
    if kind is RuleSubject.PATH and "{" not in specifier:
        parts = split_path(specifier, roots)
        return next((normalize_word(part) for part in parts if part not in ("/", "..") and not WILD & set(part)), None)
    if kind is RuleSubject.COMMAND:
        program = find_pattern_program(specifier, read)
        return None if program is None or WILD & set(program) else normalize_word(get_program_name(program))
    return None


def find_subject_words(values: Iterable[object], kind: RuleSubject, read: ReadLine) -> frozenset[str] | None:
    """Find the names that a call contains; None if they are unknown and every rule must be tested."""
    words: set[str] = set()
    for value in values:
        if not isinstance(value, str) or len(value) > LONGEST or kind in (RuleSubject.TEXT, RuleSubject.URL):
            return None
        names = _find_path_words(value) if kind is RuleSubject.PATH else _find_command_words(value, read)
        if names is None:
            return None
        words |= names
    return frozenset(words)


def _find_path_words(path: str) -> set[str] | None:
    return None if "\0" in path else set(normalize_word(path).split("/"))


def _find_command_words(text: str, read: ReadLine) -> set[str] | None:
    commands = list_commands(text, read)
    if commands is None:
        return None
    names = [command[0] for command in commands if command]
    if any(WILD & set(name) for name in names):
        return None
    return {normalize_word(get_program_name(name)) for name in names}


Condition: TypeAlias = Callable[[Tool, Arguments], bool]

REGEX_SECONDS = 0.05
MISSING = object()
ODD = object()
"""The path leads through a value that is not an object."""


def build_condition(
    parsed: ParsedRule,
    cautious: bool,
    read: ReadLine,
    kinds: Iterable[RuleSubject] = (),
    roots: Sequence[str] = (),
) -> Condition | None:
    """Build the test of a rule, None if it holds for every call. `kinds` are the subjects of the rule's tools."""
    if parsed.specifier is not None and not is_match_all(parsed.specifier):
        tests: dict[RuleSubject, Test] = {
            kind: _build_specifier_test(parsed.specifier, kind, cautious, read, roots) for kind in kinds
        }
        return lambda tool, arguments: _is_specifier_met(tool, arguments, tests, cautious)
    predicates = [(predicate, *_build_predicate_tests(predicate, cautious, roots)) for predicate in parsed.predicates]
    if not predicates:
        return None

    def holds(tool: Tool, arguments: Arguments) -> bool:
        place_arguments = tool.places
        if parsed.alone and not _is_nothing_else_given(tool, arguments, parsed):
            return False
        return all(
            _is_place_predicate_met(tool, arguments, predicate, place_test, cautious)
            if predicate.path[0] in place_arguments
            else _is_predicate_met(tool, arguments, predicate, test, cautious)
            for predicate, test, place_test in predicates
        )

    return holds


def _is_nothing_else_given(tool: Tool, arguments: Arguments, parsed: ParsedRule) -> bool:
    named = {predicate.path[0] for predicate in parsed.predicates} | {*tool.incidental}
    others = ((name, value) for name, value in arguments.items() if name not in named)
    return all(_is_same_json(value, _find_default(tool.arguments, (name,))) for name, value in others)


def _build_predicate_tests(predicate: Predicate, cautious: bool, roots: Sequence[str]) -> tuple[Test, Test]:
    """Build the test for any argument, and the one for an argument that names paths."""

    def build_test(each_predicate: Predicate) -> Test:
        return build_predicate_test(each_predicate, cautious, roots)

    return build_test(predicate), build_place_test(predicate, cautious, roots, build_test)


def is_match_all(specifier: str) -> bool:
    """True if the specifier matches everything."""
    return specifier in ("*", "**", ":*", "**/*")


def _build_specifier_test(
    specifier: str, kind: RuleSubject, cautious: bool, read: ReadLine, roots: Sequence[str]
) -> Test:
    if kind is RuleSubject.PATH:
        return _build_path_test(compile_path_glob(specifier, cautious, roots))
    if kind is RuleSubject.URL:
        return _build_path_test(compile_url_pattern(specifier, cautious))
    return _build_text_test(
        compile_command_pattern(specifier, cautious, read)
        if kind is RuleSubject.COMMAND
        else compile_text_glob(specifier, cautious)
    )


def _is_specifier_met(tool: Tool, arguments: Arguments, tests: Mapping[RuleSubject, Test], cautious: bool) -> bool:
    test = tests.get(tool.subject[1]) if tool.subject else None
    return test is not None and _is_test_met(get_subjects(tool, arguments), test, cautious)


def get_subjects(tool: Tool, arguments: Arguments) -> list[Any]:
    """Return the values of this call that the specifiers of rules are matched against."""
    if tool.subject is None:
        return []
    argument, kind = tool.subject
    value = arguments.get(argument)
    if isinstance(value, str):
        return [tool.join_base_path(argument, value, arguments) if kind is RuleSubject.PATH else value]
    leaves = _list_leaves(find_values(arguments, (argument,), tool.arguments))
    if kind is not RuleSubject.PATH:
        return list(leaves)
    return [_locate_from_workspace(tool, argument, leaf, arguments) for leaf in leaves]


def _locate_from_workspace(tool: Tool, argument: str, value: Any, arguments: Arguments) -> Any:
    """Return the path relative to the workspace; the workspace itself if the argument is missing."""
    if value is MISSING:
        return ""
    if isinstance(value, list | tuple):
        return [_locate_from_workspace(tool, argument, one, arguments) for one in cast(Sequence[Any], value)]
    return tool.join_base_path(argument, value, arguments) if isinstance(value, str) else value


def find_call_words(tool: Tool, arguments: Arguments, read: ReadLine) -> frozenset[str] | None:
    """Find the words by which rules about this call are indexed."""
    if tool.subject is None:
        return None
    subjects = [value for value in get_subjects(tool, arguments) if value is not MISSING]
    return find_subject_words(subjects, tool.subject[1], read)


def _is_test_met(values: Sequence[Any], test: Test, cautious: bool) -> bool:
    answers = [None if value is ODD else test(value) for value in values]
    return any(answer is not False for answer in answers) if cautious else all(answer is True for answer in answers)


def _is_predicate_met(tool: Tool, arguments: Arguments, predicate: Predicate, test: Test, cautious: bool) -> bool:
    return _is_test_met(_get_tested_values(tool, arguments, predicate), test, cautious)


def _is_place_predicate_met(tool: Tool, arguments: Arguments, predicate: Predicate, test: Test, cautious: bool) -> bool:
    values = _get_tested_values(tool, arguments, predicate)
    if predicate.op is not PredicateOperator.EXISTS:
        values = [
            value
            if value is MISSING and not cautious
            else _locate_from_workspace(tool, predicate.path[0], value, arguments)
            for value in values
        ]
    return _is_test_met(values, test, cautious)


def _get_tested_values(tool: Tool, arguments: Arguments, predicate: Predicate) -> list[Any]:
    """Return the values that the predicate tests: whole lists if it is about lists, else their elements."""
    values = list(find_values(arguments, predicate.path, tool.arguments))
    whole = predicate.op in (PredicateOperator.CONTAINS, PredicateOperator.EXISTS) or (
        isinstance(predicate.value, list) and predicate.op is PredicateOperator.EQ
    )
    return values if whole else list(_list_leaves(values))


def find_values(arguments: Arguments, path: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[Any]:
    """Find the values that the path leads to, for each element of the lists on the way."""
    level: list[Any] = [arguments]
    for key in path:
        level = [value for item in level for value in _find_next_values(item, key)]
    default = _find_default(schema, path)
    return (default if value is MISSING else value for value in level)


def _find_next_values(item: Any, key: str) -> Iterator[Any]:
    for value in _list_leaves([item]):
        if isinstance(value, Mapping):
            entries = cast(Mapping[str, Any], value)
            yield from entries.values() if key == "*" and entries else (entries.get(key, MISSING),)
        else:
            yield MISSING if value is None or value is MISSING else ODD


def _list_leaves(values: Any) -> Iterator[Any]:
    """Yield the elements, of nested lists as well; an empty list counts as MISSING."""
    stack = [iter(values)]
    while stack:
        value = next(stack[-1], stack)
        if value is stack:
            stack.pop()
        elif isinstance(value, list | tuple):
            stack.append(iter(cast(list[Any], value) or [MISSING]))
        else:
            yield value


def _find_default(schema: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = schema
    for key in path:
        node = node.get("properties", {}).get(key, {}) if isinstance(node, Mapping) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # any JSON
    return cast(Mapping[str, Any], node).get("default", MISSING) if isinstance(node, Mapping) else MISSING


def build_predicate_test(predicate: Predicate, cautious: bool, roots: Sequence[str] = ()) -> Test:
    """Build the test of one value."""
    value = predicate.value
    if predicate.op is PredicateOperator.EXISTS:
        return lambda argument: (argument is not MISSING) is value
    if predicate.op is PredicateOperator.GLOB:
        return _build_glob_test(value, cautious, roots)
    if predicate.op is PredicateOperator.REGEX:
        return _build_regex_test(value, cautious)
    tests: dict[PredicateOperator, Test] = {
        PredicateOperator.EQ: lambda argument: _is_same_json(argument, value),
        PredicateOperator.IN: lambda argument: any(_is_same_json(argument, one) for one in value),
        PredicateOperator.NEQ: lambda argument: cautious if argument is MISSING else not _is_same_json(argument, value),
        PredicateOperator.NOT_IN: lambda argument: (
            cautious if argument is MISSING else not any(_is_same_json(argument, one) for one in value)
        ),
        PredicateOperator.CONTAINS: lambda argument: _has_value(argument, value),
        PredicateOperator.GT: lambda argument: _compare_number(argument, lambda number: number > value),
        PredicateOperator.LT: lambda argument: _compare_number(argument, lambda number: number < value),
    }
    return tests[predicate.op]


def _is_same_json(argument: Any, value: Any) -> bool:
    """True if equal as JSON: `true` is not 1, and 1.0 is 1."""
    if isinstance(argument, bool) or isinstance(value, bool):
        return argument is value
    if isinstance(argument, list | tuple) and isinstance(value, list):
        left, right = cast(Sequence[Any], argument), cast(list[Any], value)
        return len(left) == len(right) and all(
            _is_same_json(one, other) for one, other in zip(left, right, strict=True)
        )
    return bool(argument == value)


def _has_value(argument: Any, value: Any) -> bool | None:
    if isinstance(argument, str):
        return value in argument if isinstance(value, str) else None
    if isinstance(argument, list | tuple):
        return any(_is_same_json(one, value) for one in cast(Sequence[Any], argument))
    return False if argument is MISSING else None


def _compare_number(argument: Any, test: Callable[[float], bool]) -> bool | None:
    if isinstance(argument, bool) or not isinstance(argument, int | float):
        return False if argument is MISSING else None
    return None if argument != argument else test(argument)


def _build_text_test(fits: Text) -> Test:
    return lambda argument: fits(argument) if isinstance(argument, str) else False if argument is MISSING else None


def _build_path_test(fits: Path) -> Test:
    return lambda argument: fits(argument) if isinstance(argument, str) else None


def _build_glob_test(pattern: str, cautious: bool, roots: Sequence[str]) -> Test:
    """Match as text, and as a path if the pattern could be one: `./secrets//x` must not slip past `secrets/**`."""
    plain = _build_text_test(compile_text_glob(pattern, cautious))
    if not cautious or "/" not in pattern:
        return plain
    path = _build_text_test(compile_path_glob(pattern, cautious, roots))

    def test(argument: Any) -> bool | None:
        first, second = plain(argument), path(argument)
        return True if first or second else None if first is None or second is None else False

    return test


def _build_regex_test(pattern: str, cautious: bool) -> Test:
    import regex  # imported here, because few rules need it and every start would pay for it

    compiled = regex.compile(pattern, regex.IGNORECASE if cautious else 0)

    def search(argument: str) -> bool | None:
        try:
            return compiled.search(argument, timeout=REGEX_SECONDS) is not None
        except TimeoutError:
            return None

    return _build_text_test(search)
