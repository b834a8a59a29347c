"""What does a rule's text say? It names tools, and may set conditions on their arguments.

Read                                every call of Read
Read(src/**)                        a specifier: the argument that the tool declares as its subject
bash(git push:*)                    commands that start with these words
server:tool   server:*   git_*      tools of an upstream, and names with wildcards
mcp__server__tool                   server:tool as some hosts write it
tool(options.force eq true and repo glob "acme/*")
                                    predicates: a path into the arguments, an operator, a value
tool(command eq "make" and nothing else)
                                    predicates about every argument that the call gives
"""

import json
import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any, cast

from msgspec import Struct

from mcp_server.model.text import find_nearest_name, quote_text, strip_curly_quotes


class PredicateOperator(StrEnum):
    EQ = "eq"
    NEQ = "neq"
    IN = "in"
    NOT_IN = "not_in"
    GLOB = "glob"
    REGEX = "regex"
    CONTAINS = "contains"
    EXISTS = "exists"
    GT = "gt"
    LT = "lt"


class Predicate(Struct, frozen=True):
    path: tuple[str, ...]
    op: PredicateOperator
    value: Any

    @property
    def where(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class ParsedRule:
    tool: str
    specifier: str | None = None
    predicates: tuple[Predicate, ...] = ()
    alone: bool = False
    """It ends with `and nothing else`: it is only about calls that give no argument but those in its predicates."""
    literal: bool = field(default=False, compare=False)
    """The specifier was quoted, so it is certainly text to match."""


class BareWord(str):
    """An unquoted word that is not a number, `true`, `false` or `null`."""

    __slots__ = ()


class MalformedRule(ValueError):
    """A rule that cannot be parsed; the message says why to the person who wrote it."""


WHOLE = re.compile(r"\s*(?P<tool>[\w.:*?/\[\]!-]+)\s*(?:\((?P<inside>.*)\))?\s*", re.DOTALL)
PATH = r"-?[A-Za-z_][\w$-]*(?:\.[\w$*-]+)*"
OPS = "|".join(sorted(PredicateOperator, key=len, reverse=True))
# Brackets that start like this contain predicates; a specifier that looks the same must be quoted.
PREDICATE = re.compile(rf"\s*{PATH}\s+(?:{OPS})(?:\s|$)")
HEAD = re.compile(rf"\s*(?P<path>{PATH})\s+(?P<op>{OPS})(?=\s|$)")
AND = re.compile(r"\s+and(?=\s)")
ALONE = re.compile(r"\s+nothing\s+else\s*")
JOINED = re.compile(r"(?P<word>(?i:and|or)(?=\s)|&&?|\|\|?|[,;+])")
STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
BARE = re.compile(r"""[^\s,\[\]()"']+""")
OWN = "menugate"
ALIKE = 0.75
"""A word this similar to `true` or `false` was probably meant as that."""


def parse_rule(text: str) -> ParsedRule:
    whole = WHOLE.fullmatch(text)
    if whole is None:
        raise MalformedRule("a rule is `tool` or `tool(...)`.")
    tool, inside = normalize_tool_name(whole["tool"]), whole["inside"]
    if inside is None:
        return ParsedRule(tool)
    if not inside.strip():
        raise MalformedRule(f"the brackets are empty; write {quote_text(tool)} for every call.")
    if STRING.fullmatch(inside.strip()):
        return ParsedRule(tool, _parse_string(inside.strip()), literal=True)
    if PREDICATE.match(inside):
        predicates, alone = _parse_predicates(inside)
        return ParsedRule(tool, predicates=predicates, alone=alone)
    return ParsedRule(tool, inside.strip())


def normalize_tool_name(name: str) -> str:
    """Write `mcp__server__tool`, as some hosts spell it, as `server:tool`, and our own tools without a server."""
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        name = f"{server}:{tool or '*'}"
    return name.removeprefix(f"{OWN}:")


def _parse_predicates(text: str) -> tuple[tuple[Predicate, ...], bool]:
    """Return the predicates, and whether `and nothing else` follows them."""
    predicates: list[Predicate] = []
    at = 0
    while True:
        head = HEAD.match(text, at)
        if head is None:
            raise MalformedRule(_describe_no_predicate(text[at:].strip()))
        op = PredicateOperator(head["op"])
        value, at = _parse_value(text, head.end(), op)
        predicates.append(Predicate(tuple(head["path"].split(".")), op, value))
        if not text[at:].strip():
            return tuple(predicates), False
        conjunction = AND.match(text, at)
        if conjunction is None:
            raise MalformedRule(_describe_left_over(text[at:].strip()))
        at = conjunction.end()
        if ALONE.fullmatch(text, at):
            return tuple(predicates), True


def _describe_left_over(text: str) -> str:
    joint = JOINED.match(text)
    if joint and joint["word"].lower() in ("or", "|", "||"):
        return f"there is no {quote_text(joint['word'])}: write two rules."
    if joint:
        rest = text[joint.end() :].strip()
        return f"join predicates with `and`; did you mean {quote_text(f'and {rest}')} for {quote_text(text)}?"
    return f"{quote_text(text)} is left over; join predicates with `and`, and quote text that has spaces."


def _describe_no_predicate(text: str) -> str:
    from mcp_server.policy.rule_slips import describe_wrong_operator  # needed only for a faulty rule

    words = text.split()
    fault = describe_wrong_operator(words[1], tuple(PredicateOperator)) if len(words) > 1 else None
    if fault:
        return f"{quote_text(text)} is not a predicate: {fault}{'' if fault.endswith('?') else '.'}"
    operators = ", ".join(PredicateOperator)
    return f"{quote_text(text)} is not a predicate; write `path op value`, with one of the operators {operators}."


def _parse_value(text: str, at: int, op: PredicateOperator) -> tuple[Any, int]:
    at += len(text[at:]) - len(text[at:].lstrip())
    if op is PredicateOperator.EXISTS and (at == len(text) or text.startswith("and ", at)):
        return True, at - 1 if at < len(text) else at
    value, at = _parse_list(text, at + 1) if text.startswith("[", at) else _parse_one_value(text, at)
    _check_value(op, value)
    _refuse_bare(value)
    return value, at


def _refuse_bare(value: Any) -> None:
    for one in cast(list[Any], value if isinstance(value, list) else [value]):
        if isinstance(one, BareWord):
            raise MalformedRule(_describe_missing_quotes(one))


def _parse_one_value(text: str, at: int) -> tuple[Any, int]:
    if match := STRING.match(text, at):
        return _parse_string(match[0]), match.end()
    if match := BARE.match(text, at):
        return _parse_bare_word(match[0]), match.end()
    raise MalformedRule(
        f"a value is missing before {quote_text(text[at:])}." if text[at:] else "a value is missing at the end."
    )


def _parse_list(text: str, at: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \t\n,"))
        if text.startswith("]", at):
            return values, at + 1
        value, at = _parse_one_value(text, at)
        values.append(value)


def _parse_string(text: str) -> str:
    if text.startswith("'"):
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    try:
        return json.loads(text, strict=False)
    except ValueError:
        raise MalformedRule(
            f"{quote_text(text)} is not a valid JSON string; in single quotes a backslash only escapes."
        ) from None


def _parse_bare_word(text: str) -> Any:
    """Parse a number, `true`, `false` or `null`; otherwise return the word itself."""
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,18}\.\d{1,18}", text):
        return float(text)
    words: dict[str, Any] = {"true": True, "false": False, "null": None}
    return words.get(text, BareWord(text))


def _describe_missing_quotes(word: str) -> str:
    """Say what to write for a bare word, which may have been meant as `true`, `false` or `null`."""
    low = word.lower()
    literal = {"yes": "true", "on": "true", "no": "false", "off": "false", "none": "null", "nil": "null"}.get(low, low)
    near = find_nearest_name(low, ("true", "false"))
    if literal == low and near and SequenceMatcher(None, low, near).ratio() >= ALIKE:
        literal = near
    also = f", or `{literal}` if you mean that" if literal in ("true", "false", "null") else ""
    number = ", and a number with only digits and one point" if word[:1] in "+-.0123456789" else ""
    text = quote_text(json.dumps(strip_curly_quotes(str(word)), ensure_ascii=False))
    return f"{quote_text(word)} is not a value: write text in quotes, {text}{also}{number}."


def _check_value(op: PredicateOperator, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if op in (PredicateOperator.GT, PredicateOperator.LT) and not number:
        raise MalformedRule(f"`{op}` compares numbers, and {quote_text(str(value))} is not one.")
    if op in (PredicateOperator.IN, PredicateOperator.NOT_IN) and not (isinstance(value, list) and value):
        raise MalformedRule(f"`{op}` needs a list: `{op} [a, b]`.")
    if op in (PredicateOperator.GLOB, PredicateOperator.REGEX) and not isinstance(value, str):
        raise MalformedRule(f"`{op}` needs a string.")
    if op is PredicateOperator.EXISTS and not isinstance(value, bool):
        raise MalformedRule("`exists` takes `true`, `false` or nothing.")
