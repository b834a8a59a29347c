"""Does a rule's condition hold for these arguments?

Total: any arguments get an answer. Where it cannot be told (a number is asked for and a text is there, a path is no
text, a pattern takes too long, a command cannot be read), a rule that narrows (block, deny, ask) holds and a rule that
allows does not.

- What is not there is an answer, not a doubt: it has the schema's default where there is one; otherwise it exists not,
  and equals, contains and exceeds nothing. `neq` and `not_in` then hold for a rule that narrows.
- A path through a list speaks about its elements: one is enough for a rule that narrows, all must fit to allow.
- Upper and lower case are one for a specifier, `glob` and `regex` of a rule that narrows, because on some disks they
  are; a rule that allows means what it says. `eq`, `in` and `contains` are exact, except about paths.
- An argument that names places is brought into one spelling before any predicate sees it, and where it is left out it
  means the workspace to a rule that narrows.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from mcp_server.model.shell import ReadLine
from mcp_server.model.tools import Arguments, RuleSubject, Tool
from mcp_server.policy.globs import LONGEST, Path, Text, compile_path_glob, compile_text_glob, split_path
from mcp_server.policy.paths import Test, build_place_test
from mcp_server.policy.rule_syntax import ParsedRule, Predicate, PredicateOperator
from mcp_server.policy.shell import compile_command_pattern, find_pattern_program, get_program_name, list_commands

# By which word is a rule found among a thousand about the same tool?
#
# A specifier with a name in it can only fit a call that holds this name: the command it runs, or a folder or file
# along its path. The test itself stays the same; this only spares the rules that could not fit.

WILD = frozenset("$*?[{")


def normalize_word(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def find_rule_word(specifier: str, kind: RuleSubject, read: ReadLine, roots: Sequence[str] = ()) -> str | None:
    """The name a call has to hold for the specifier to fit it; None where there is none to be named."""
    if kind is RuleSubject.PATH and "{" not in specifier:
        parts = split_path(specifier, roots)
        return next((normalize_word(part) for part in parts if part not in ("/", "..") and not WILD & set(part)), None)
    if kind is RuleSubject.COMMAND:
        program = find_pattern_program(specifier, read)
        return None if program is None or WILD & set(program) else normalize_word(get_program_name(program))
    return None


def find_subject_words(values: Iterable[object], kind: RuleSubject, read: ReadLine) -> frozenset[str] | None:
    """The names that a call holds; None where that cannot be told, and every rule has to be asked."""
    words: set[str] = set()
    for value in values:
        if not isinstance(value, str) or len(value) > LONGEST or kind is RuleSubject.TEXT:
            return None
        found = _find_path_words(value) if kind is RuleSubject.PATH else _find_command_words(value, read)
        if found is None:
            return None
        words |= found
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
"""Something is there, but not of a kind that the path could lead through."""


def build_condition(
    written: ParsedRule,
    cautious: bool,
    read: ReadLine,
    kinds: Iterable[RuleSubject] = (),
    roots: Sequence[str] = (),
) -> Condition | None:
    """The test that a rule puts to a call, None where it is true of every call. `kinds`: of its tools' subjects."""
    if written.specifier is not None and not is_match_all(written.specifier):
        tests: dict[RuleSubject, Test] = {
            kind: _build_specifier_test(written.specifier, kind, cautious, read, roots) for kind in kinds
        }
        return lambda tool, arguments: _is_specifier_met(tool, arguments, tests, cautious)
    predicates = [(one, *_build_predicate_tests(one, cautious, roots)) for one in written.predicates]
    if not predicates:
        return None

    def holds(tool: Tool, arguments: Arguments) -> bool:
        places = tool.places
        return all(
            _is_place_predicate_met(tool, arguments, one, place, cautious)
            if one.path[0] in places
            else _is_predicate_met(tool, arguments, one, test, cautious)
            for one, test, place in predicates
        )

    return holds


def _build_predicate_tests(predicate: Predicate, cautious: bool, roots: Sequence[str]) -> tuple[Test, Test]:
    """Of any argument, and of one that names places."""

    def build_test(one: Predicate) -> Test:
        return build_predicate_test(one, cautious, roots)

    return build_test(predicate), build_place_test(predicate, cautious, roots, build_test)


def is_match_all(specifier: str) -> bool:
    """Is the specifier one that leaves nothing out?"""
    return specifier in ("*", "**", ":*", "**/*")


def _build_specifier_test(
    specifier: str, kind: RuleSubject, cautious: bool, read: ReadLine, roots: Sequence[str]
) -> Test:
    if kind is RuleSubject.PATH:
        return _build_path_test(compile_path_glob(specifier, cautious, roots))
    return _build_text_test(
        compile_command_pattern(specifier, cautious, read)
        if kind is RuleSubject.COMMAND
        else compile_text_glob(specifier, cautious)
    )


def _is_specifier_met(tool: Tool, arguments: Arguments, tests: Mapping[RuleSubject, Test], cautious: bool) -> bool:
    test = tests.get(tool.subject[1]) if tool.subject else None
    return test is not None and _is_test_met(get_subjects(tool, arguments), test, cautious)


def get_subjects(tool: Tool, arguments: Arguments) -> list[Any]:
    """What the specifiers of rules are matched against, in this call."""
    if tool.subject is None:
        return []
    argument, kind = tool.subject
    given = arguments.get(argument)
    if isinstance(given, str):
        return [tool.join_base_path(argument, given, arguments) if kind is RuleSubject.PATH else given]
    found = _list_leaves(find_values(arguments, (argument,), tool.arguments))
    return (
        [_locate_from_workspace(tool, argument, value, arguments) for value in found]
        if kind is RuleSubject.PATH
        else list(found)
    )


def _locate_from_workspace(tool: Tool, argument: str, value: Any, arguments: Arguments) -> Any:
    """A place as from the workspace, and the workspace itself where none is named."""
    if value is MISSING:
        return ""
    if isinstance(value, list | tuple):
        return [_locate_from_workspace(tool, argument, one, arguments) for one in cast(Sequence[Any], value)]
    return tool.join_base_path(argument, value, arguments) if isinstance(value, str) else value


def find_call_words(tool: Tool, arguments: Arguments, read: ReadLine) -> frozenset[str] | None:
    """The words that a rule about this call can be found by."""
    if tool.subject is None:
        return None
    found = [value for value in get_subjects(tool, arguments) if value is not MISSING]
    return find_subject_words(found, tool.subject[1], read)


def _is_test_met(found: Sequence[Any], test: Test, cautious: bool) -> bool:
    answers = [None if value is ODD else test(value) for value in found]
    return any(answer is not False for answer in answers) if cautious else all(answer is True for answer in answers)


def _is_predicate_met(tool: Tool, arguments: Arguments, predicate: Predicate, test: Test, cautious: bool) -> bool:
    return _is_test_met(_get_asked_values(tool, arguments, predicate), test, cautious)


def _is_place_predicate_met(tool: Tool, arguments: Arguments, predicate: Predicate, test: Test, cautious: bool) -> bool:
    found = _get_asked_values(tool, arguments, predicate)
    if predicate.op is not PredicateOperator.EXISTS:
        found = [
            value
            if value is MISSING and not cautious
            else _locate_from_workspace(tool, predicate.path[0], value, arguments)
            for value in found
        ]
    return _is_test_met(found, test, cautious)


def _get_asked_values(tool: Tool, arguments: Arguments, predicate: Predicate) -> list[Any]:
    """What the predicate is asked of: lists as they are where it is about lists, else their elements."""
    found = list(find_values(arguments, predicate.path, tool.arguments))
    whole = predicate.op in (PredicateOperator.CONTAINS, PredicateOperator.EXISTS) or (
        isinstance(predicate.value, list) and predicate.op is PredicateOperator.EQ
    )
    return found if whole else list(_list_leaves(found))


def find_values(arguments: Arguments, path: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[Any]:
    """What the path leads to, element by element where it leads through lists."""
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


def _list_leaves(found: Any) -> Iterator[Any]:
    """The elements, of lists in lists as well; an empty list holds nothing."""
    waiting = [iter(found)]
    while waiting:
        value = next(waiting[-1], waiting)
        if value is waiting:
            waiting.pop()
        elif isinstance(value, list | tuple):
            waiting.append(iter(cast(list[Any], value) or [MISSING]))
        else:
            yield value


def _find_default(schema: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = schema
    for key in path:
        node = node.get("properties", {}).get(key, {}) if isinstance(node, Mapping) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # any JSON
    return cast(Mapping[str, Any], node).get("default", MISSING) if isinstance(node, Mapping) else MISSING


def build_predicate_test(predicate: Predicate, cautious: bool, roots: Sequence[str] = ()) -> Test:
    """The predicate as a test of one value."""
    value = predicate.value
    if predicate.op is PredicateOperator.EXISTS:
        return lambda found: (found is not MISSING) is value
    if predicate.op is PredicateOperator.GLOB:
        return _build_glob_test(value, cautious, roots)
    if predicate.op is PredicateOperator.REGEX:
        return _build_regex_test(value, cautious)
    tests: dict[PredicateOperator, Test] = {
        PredicateOperator.EQ: lambda found: _is_same_json(found, value),
        PredicateOperator.IN: lambda found: any(_is_same_json(found, one) for one in value),
        PredicateOperator.NEQ: lambda found: cautious if found is MISSING else not _is_same_json(found, value),
        PredicateOperator.NOT_IN: lambda found: (
            cautious if found is MISSING else not any(_is_same_json(found, one) for one in value)
        ),
        PredicateOperator.CONTAINS: lambda found: _has_value(found, value),
        PredicateOperator.GT: lambda found: _compare_number(found, lambda number: number > value),
        PredicateOperator.LT: lambda found: _compare_number(found, lambda number: number < value),
    }
    return tests[predicate.op]


def _is_same_json(found: Any, value: Any) -> bool:
    """Equal as JSON: `true` is not 1, and 1.0 is 1."""
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, list | tuple) and isinstance(value, list):
        left, right = cast(Sequence[Any], found), cast(list[Any], value)
        return len(left) == len(right) and all(
            _is_same_json(one, other) for one, other in zip(left, right, strict=True)
        )
    return bool(found == value)


def _has_value(found: Any, value: Any) -> bool | None:
    if isinstance(found, str):
        return value in found if isinstance(value, str) else None
    if isinstance(found, list | tuple):
        return any(_is_same_json(one, value) for one in cast(Sequence[Any], found))
    return False if found is MISSING else None


def _compare_number(found: Any, test: Callable[[float], bool]) -> bool | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False if found is MISSING else None
    return None if found != found else test(found)


def _build_text_test(fits: Text) -> Test:
    return lambda found: fits(found) if isinstance(found, str) else False if found is MISSING else None


def _build_path_test(fits: Path) -> Test:
    return lambda found: fits(found) if isinstance(found, str) else None


def _build_glob_test(pattern: str, cautious: bool, roots: Sequence[str]) -> Test:
    """As text; where the pattern could be a path, `./secrets//x` must not slip past `secrets/**` either."""
    plain = _build_text_test(compile_text_glob(pattern, cautious))
    if not cautious or "/" not in pattern:
        return plain
    path = _build_text_test(compile_path_glob(pattern, cautious, roots))

    def test(found: Any) -> bool | None:
        first, second = plain(found), path(found)
        return True if first or second else None if first is None or second is None else False

    return test


def _build_regex_test(pattern: str, cautious: bool) -> Test:
    import regex  # here, because few rules need it and every start would pay for it

    compiled = regex.compile(pattern, regex.IGNORECASE if cautious else 0)

    def search(found: str) -> bool | None:
        try:
            return compiled.search(found, timeout=REGEX_SECONDS) is not None
        except TimeoutError:
            return None

    return _build_text_test(search)
