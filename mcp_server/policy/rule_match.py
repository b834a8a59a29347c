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

from mcp_server.model.tools import Arguments, RuleSubject, Tool
from mcp_server.policy.globs import LONGEST, Path, Text, lexical, paths, texts
from mcp_server.policy.paths import Test, place_test
from mcp_server.policy.rule_syntax import ParsedRule, Predicate, PredicateOperator
from mcp_server.policy.shell import lines
from mcp_server.policy.shell_reader import read

# By which word is a rule found among a thousand about the same tool?
#
# A specifier with a name in it can only fit a call that holds this name: the command it runs, or a folder or file
# along its path. The test itself stays the same; this only spares the rules that could not fit.

WILD = frozenset("$*?[{")


def plain(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def word_of(specifier: str, kind: RuleSubject, roots: Sequence[str] = ()) -> str | None:
    """The name a call has to hold for the specifier to fit it; None where there is none to be named."""
    if kind is RuleSubject.PATH and "{" not in specifier:
        parts = lexical(specifier, roots)
        return next((plain(part) for part in parts if part not in ("/", "..") and not WILD & set(part)), None)
    if kind is RuleSubject.COMMAND:
        line = read(specifier.removesuffix(":*"))
        first = line.commands[0][0] if line and line.plain else "*"
        return None if WILD & set(first) else plain(first.rsplit("/", 1)[-1])
    return None


def words_of(values: Iterable[object], kind: RuleSubject) -> frozenset[str] | None:
    """The names that a call holds; None where that cannot be told, and every rule has to be asked."""
    words: set[str] = set()
    for value in values:
        if not isinstance(value, str) or len(value) > LONGEST or kind is RuleSubject.TEXT:
            return None
        found = _in_path(value) if kind is RuleSubject.PATH else _in_command(value)
        if found is None:
            return None
        words |= found
    return frozenset(words)


def _in_path(path: str) -> set[str] | None:
    return None if "\0" in path else set(plain(path).split("/"))


def _in_command(text: str) -> set[str] | None:
    line = read(text)
    if line is None:
        return None
    names = [command[0] for command in line.commands if command]
    if any(WILD & set(name) for name in names):
        return None
    return {plain(name.rsplit("/", 1)[-1]) for name in names}


Condition: TypeAlias = Callable[[Tool, Arguments], bool]

REGEX_SECONDS = 0.05
MISSING = object()
ODD = object()
"""Something is there, but not of a kind that the path could lead through."""


def condition(
    written: ParsedRule, cautious: bool, kinds: Iterable[RuleSubject] = (), roots: Sequence[str] = ()
) -> Condition | None:
    """The test that a rule puts to a call, None where it is true of every call. `kinds`: of its tools' subjects."""
    if written.specifier is not None and not everything(written.specifier):
        tests: dict[RuleSubject, Test] = {kind: _test(written.specifier, kind, cautious, roots) for kind in kinds}
        return lambda tool, arguments: _specified(tool, arguments, tests, cautious)
    predicates = [(one, *_tests(one, cautious, roots)) for one in written.predicates]
    if not predicates:
        return None

    def holds(tool: Tool, arguments: Arguments) -> bool:
        places = tool.places
        return all(
            _holds_of_place(tool, arguments, one, place, cautious)
            if one.path[0] in places
            else _holds(tool, arguments, one, test, cautious)
            for one, test, place in predicates
        )

    return holds


def _tests(predicate: Predicate, cautious: bool, roots: Sequence[str]) -> tuple[Test, Test]:
    """Of any argument, and of one that names places."""

    def of(one: Predicate) -> Test:
        return predicate_test(one, cautious, roots)

    return of(predicate), place_test(predicate, cautious, roots, of)


def everything(specifier: str) -> bool:
    """Is the specifier one that leaves nothing out?"""
    return specifier in ("*", "**", ":*", "**/*")


def _test(specifier: str, kind: RuleSubject, cautious: bool, roots: Sequence[str]) -> Test:
    if kind is RuleSubject.PATH:
        return _on_path(paths(specifier, cautious, roots))
    return _on_text(lines(specifier, cautious) if kind is RuleSubject.COMMAND else texts(specifier, cautious))


def _specified(tool: Tool, arguments: Arguments, tests: Mapping[RuleSubject, Test], cautious: bool) -> bool:
    test = tests.get(tool.subject[1]) if tool.subject else None
    return test is not None and _verdict(subjects(tool, arguments), test, cautious)


def subjects(tool: Tool, arguments: Arguments) -> list[Any]:
    """What the specifiers of rules are matched against, in this call."""
    if tool.subject is None:
        return []
    argument, kind = tool.subject
    given = arguments.get(argument)
    if isinstance(given, str):
        return [tool.joined(argument, given, arguments) if kind is RuleSubject.PATH else given]
    found = _leaves(values(arguments, (argument,), tool.arguments))
    return [_placed(tool, argument, value, arguments) for value in found] if kind is RuleSubject.PATH else list(found)


def _placed(tool: Tool, argument: str, value: Any, arguments: Arguments) -> Any:
    """A place as from the workspace, and the workspace itself where none is named."""
    if value is MISSING:
        return ""
    if isinstance(value, list | tuple):
        return [_placed(tool, argument, one, arguments) for one in cast(Sequence[Any], value)]
    return tool.joined(argument, value, arguments) if isinstance(value, str) else value


def words(tool: Tool, arguments: Arguments) -> frozenset[str] | None:
    """The words that a rule about this call can be found by."""
    if tool.subject is None:
        return None
    found = [value for value in subjects(tool, arguments) if value is not MISSING]
    return words_of(found, tool.subject[1])


def _verdict(found: Sequence[Any], test: Test, cautious: bool) -> bool:
    answers = [None if value is ODD else test(value) for value in found]
    return any(answer is not False for answer in answers) if cautious else all(answer is True for answer in answers)


def _holds(tool: Tool, arguments: Arguments, predicate: Predicate, test: Test, cautious: bool) -> bool:
    return _verdict(_asked(tool, arguments, predicate), test, cautious)


def _holds_of_place(tool: Tool, arguments: Arguments, predicate: Predicate, test: Test, cautious: bool) -> bool:
    found = _asked(tool, arguments, predicate)
    if predicate.op is not PredicateOperator.EXISTS:
        found = [
            value if value is MISSING and not cautious else _placed(tool, predicate.path[0], value, arguments)
            for value in found
        ]
    return _verdict(found, test, cautious)


def _asked(tool: Tool, arguments: Arguments, predicate: Predicate) -> list[Any]:
    """What the predicate is asked of: lists as they are where it is about lists, else their elements."""
    found = list(values(arguments, predicate.path, tool.arguments))
    whole = predicate.op in (PredicateOperator.CONTAINS, PredicateOperator.EXISTS) or (
        isinstance(predicate.value, list) and predicate.op is PredicateOperator.EQ
    )
    return found if whole else list(_leaves(found))


def values(arguments: Arguments, path: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[Any]:
    """What the path leads to, element by element where it leads through lists."""
    level: list[Any] = [arguments]
    for key in path:
        level = [value for item in level for value in _step(item, key)]
    default = _default(schema, path)
    return (default if value is MISSING else value for value in level)


def _step(item: Any, key: str) -> Iterator[Any]:
    for value in _leaves([item]):
        if isinstance(value, Mapping):
            entries = cast(Mapping[str, Any], value)
            yield from entries.values() if key == "*" and entries else (entries.get(key, MISSING),)
        else:
            yield MISSING if value is None or value is MISSING else ODD


def _leaves(found: Any) -> Iterator[Any]:
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


def _default(schema: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = schema
    for key in path:
        node = node.get("properties", {}).get(key, {}) if isinstance(node, Mapping) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # any JSON
    return cast(Mapping[str, Any], node).get("default", MISSING) if isinstance(node, Mapping) else MISSING


def predicate_test(predicate: Predicate, cautious: bool, roots: Sequence[str] = ()) -> Test:
    """The predicate as a test of one value."""
    value = predicate.value
    if predicate.op is PredicateOperator.EXISTS:
        return lambda found: (found is not MISSING) is value
    if predicate.op is PredicateOperator.GLOB:
        return _glob(value, cautious, roots)
    if predicate.op is PredicateOperator.REGEX:
        return _regex(value, cautious)
    tests: dict[PredicateOperator, Test] = {
        PredicateOperator.EQ: lambda found: _same(found, value),
        PredicateOperator.IN: lambda found: any(_same(found, one) for one in value),
        PredicateOperator.NEQ: lambda found: cautious if found is MISSING else not _same(found, value),
        PredicateOperator.NOT_IN: lambda found: (
            cautious if found is MISSING else not any(_same(found, one) for one in value)
        ),
        PredicateOperator.CONTAINS: lambda found: _contains(found, value),
        PredicateOperator.GT: lambda found: _number(found, lambda number: number > value),
        PredicateOperator.LT: lambda found: _number(found, lambda number: number < value),
    }
    return tests[predicate.op]


def _same(found: Any, value: Any) -> bool:
    """Equal as JSON: `true` is not 1, and 1.0 is 1."""
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, list | tuple) and isinstance(value, list):
        left, right = cast(Sequence[Any], found), cast(list[Any], value)
        return len(left) == len(right) and all(_same(one, other) for one, other in zip(left, right, strict=True))
    return bool(found == value)


def _contains(found: Any, value: Any) -> bool | None:
    if isinstance(found, str):
        return value in found if isinstance(value, str) else None
    if isinstance(found, list | tuple):
        return any(_same(one, value) for one in cast(Sequence[Any], found))
    return False if found is MISSING else None


def _number(found: Any, test: Callable[[float], bool]) -> bool | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False if found is MISSING else None
    return None if found != found else test(found)


def _on_text(fits: Text) -> Test:
    return lambda found: fits(found) if isinstance(found, str) else False if found is MISSING else None


def _on_path(fits: Path) -> Test:
    return lambda found: fits(found) if isinstance(found, str) else None


def _glob(pattern: str, cautious: bool, roots: Sequence[str]) -> Test:
    """As text; where the pattern could be a path, `./secrets//x` must not slip past `secrets/**` either."""
    plain = _on_text(texts(pattern, cautious))
    if not cautious or "/" not in pattern:
        return plain
    path = _on_text(paths(pattern, cautious, roots))

    def test(found: Any) -> bool | None:
        first, second = plain(found), path(found)
        return True if first or second else None if first is None or second is None else False

    return test


def _regex(pattern: str, cautious: bool) -> Test:
    import regex  # here, because few rules need it and every start would pay for it

    compiled = regex.compile(pattern, regex.IGNORECASE if cautious else 0)

    def search(found: str) -> bool | None:
        try:
            return compiled.search(found, timeout=REGEX_SECONDS) is not None
        except TimeoutError:
            return None

    return _on_text(search)
