"""Is this a predicate in another language's syntax? Taken as text to match, it would match no call.

Finds `depth: 3`, `3 lt depth`, `gt depth 3`, `$.depth gt 3`, `"depth" gt 3` and `not depth`, and suggests our syntax.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from mcp_server.model.text import find_nearest_name, quote_text, strip_curly_quotes
from mcp_server.policy.rule_slips import (
    OPERATOR_BY_SYNONYM,
    SYNONYMS,
    describe_missing_argument,
    describe_wrong_operator,
)

NAME = r"-?[A-Za-z_][\w$-]*(?:\.[\w$*-]+)*"
LITERAL = r"""-?\d+(?:\.\d+)?|(?i:true|false|null)|"[^"]*"|'[^']*'|\[[^\]]*\]"""
SIGN = r"[=<>!~]+|[A-Za-z_]+"
ENTRY = re.compile(rf"""\s*(["'`]?)(?P<name>{NAME})\1\s*:(?P<gap>\s*)(?P<value>[^\s:=<>~].*?)\s*""", re.DOTALL)
NEXT = re.compile(rf"""[,;](?=\s*["'`]?{NAME}["'`]?\s*:)""")
STEP = r"""\.[\w$*-]+|\[(?:\d*|\*|"[^"\]]*"|'[^'\]]*')\]"""
PLACE = re.compile(
    rf"""(?P<path>(?:[$@]\.?|\.)?(?:(["'`])-?[A-Za-z_][\w.$-]*\2|-?[A-Za-z_][\w$-]*|(?<=[$@])\[)(?:{STEP}|["']\w+["']\])*)"""
    rf"""(?![\w$-])\s*(?:(?P<op>{SIGN})(?=[\s"'\[\d]|$)\s*(?P<value>.*))?""",
    re.DOTALL,
)
BACKWARDS = re.compile(
    rf"(?P<value>{LITERAL}|\S+)\s*(?P<op>{SIGN})\s*(?P<name>{NAME})(?:\s*(?P<next>{SIGN})\s*(?P<end>{LITERAL}))?"
)
FIRST = re.compile(
    rf"(?P<op>[=<>!~]+|[a-z_]+)\s*[(\s]\s*(?P<name>{NAME})(?:(?:\s*,\s*|\s+)(?P<value>[^\s)].*?))?\s*\)?"
)
DENIED = re.compile(
    rf"(?:!|(?:not|no|without|missing|absent|unset|lacks|not_exists)(?=[\s(]))[\s(]*(?:exists[\s(]+)?(?P<name>{NAME})[\s)]*"
)
COMMAS = re.compile(rf"(?P<name>{NAME})\s*,\s*(?P<op>[a-z_]+)(?:\s*,\s*(?P<value>.+))?", re.DOTALL)
FLIPPED = {"gt": "lt", "lt": "gt", "in": "contains", "contains": "in", "not_in": "neq"}
INCLUSIVE = frozenset([">=", "=>", "ge", "gte", "<=", "=<", "le", "lte"])
NO_WORDS = frozenset(("eq", "neq", "gt", "lt", "not_in", "glob", "regex"))
"""Operators that do not occur as words in file names."""


def describe_foreign_predicate(
    text: str, arguments: Collection[str], ops: Collection[str], command: bool
) -> str | None:
    """Say which predicate was meant by text in brackets; None if it may be text to match.

    `command`: the text is a shell line, in which the name of an argument may be that of a program.
    """
    for read in (
        _read_entries,
        _read_path_predicate,
        _read_comma_predicate,
        *(() if command else (_read_denial, _read_prefix_predicate)),
        _read_backwards_predicate,
    ):
        if predicate := next(read(text, arguments, ops, command), None):
            missing = describe_missing_argument(_get_first_name(predicate), arguments)
            return f"{quote_text(text)} is not a predicate; did you mean {quote_text(predicate)}?{missing}"
    return None


def _read_entries(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """`depth: 3`, `{depth: 3}`."""
    braced = text.startswith("{") and text.endswith("}")
    predicates: list[str] = []
    for part in NEXT.split(text[1:-1] if braced else text):
        entry = ENTRY.fullmatch(part)
        if entry is None:
            return
        name, value = entry["name"], entry["value"]
        plain = re.fullmatch(LITERAL, value) is not None
        if _get_first_name(name) not in arguments:
            near = find_nearest_name(_get_first_name(name), arguments) if plain and not command else None
            if near is None:
                return
            name = near + name[len(_get_first_name(name)) :]
        if command and not braced and not (plain and entry["gap"]):
            return
        op, _, rest = value.partition(" ")
        operator_and_value = (op, rest) if op in ops and (rest or op == "exists") else (_choose_operator(value), value)
        predicates.append(_format_predicate(name, *operator_and_value))
    yield " and ".join(predicates)


def _read_path_predicate(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """`$.depth gt 3`, `"depth" gt 3`, `edits[0].text exists`."""
    match = PLACE.fullmatch(text)
    if match is None:
        return
    indexed = "[" in match["path"]
    path = re.sub(r"""\[(?:\d*|\*)\]|["'`\]]""", "", match["path"]).replace("[", ".").lstrip("$@.")
    op, known = match["op"], _get_first_name(path) in arguments
    if not path or path == match["path"]:
        return
    if op is None:
        if known and not command and match["path"].startswith(("$.", "@.", "$[")):
            yield f"{path} exists"
    elif op in ops and (known or (indexed and not command)):
        yield _format_predicate(path, op, match["value"])
    elif known and not command and describe_wrong_operator(op, ops):
        yield _format_predicate(path, *_translate_operator(op, match["value"], ops))


def _read_comma_predicate(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """`file_path, eq, "a"`."""
    match = COMMAS.fullmatch(text)
    if (
        match
        and _get_first_name(match["name"]) in arguments
        and match["op"] in ops
        and (match["value"] or match["op"] == "exists")
    ):
        yield _format_predicate(match["name"], match["op"], match["value"] or "")


def _read_denial(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """`not replace_all`, `no limit`."""
    match = DENIED.fullmatch(text)
    if match and _get_first_name(match["name"]) in arguments:
        yield f"{match['name']} exists false"


def _read_prefix_predicate(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """`gt depth 3`, `exists depth`, `gt(depth, 3)`."""
    match = FIRST.fullmatch(text)
    if match is None or _get_first_name(match["name"]) not in arguments:
        return
    op, value = match["op"], match["value"]
    if value is None:
        if op in ("exists", "has", *SYNONYMS["exists"].split()):
            yield f"{match['name']} exists"
    elif op in NO_WORDS or (re.fullmatch(LITERAL, value) and (op in ops or op in OPERATOR_BY_SYNONYM)):
        yield _format_predicate(match["name"], *_translate_operator(op, value, ops))


def _read_backwards_predicate(
    text: str, arguments: Collection[str], ops: Collection[str], command: bool
) -> Iterator[str]:
    """`3 lt depth`, `1 < depth < 5`."""
    match = BACKWARDS.fullmatch(text)
    if match is None or _get_first_name(match["name"]) not in arguments:
        return
    name, value, op = match["name"], match["value"], match["op"]
    plain = re.fullmatch(LITERAL, value) is not None
    if op in ops if plain else (op in NO_WORDS and not command):
        pass
    elif not plain or command or op not in OPERATOR_BY_SYNONYM:
        return
    more = (
        f" and {_format_predicate(name, *_translate_operator(match['next'], match['end'], ops))}"
        if match["next"]
        else ""
    )
    yield _format_predicate(name, *_translate_operator(op, value, ops, FLIPPED)) + more


def _get_first_name(path: str) -> str:
    return re.split(r"[.\s]", path, maxsplit=1)[0]


def _translate_operator(
    word: str, value: str, ops: Collection[str], flipped: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, str]:
    """Return our operator and the value for it: at least 3 is greater than 2."""
    low = word.lower()
    op = low if low in ops else OPERATOR_BY_SYNONYM.get(low) or find_nearest_name(low, ops) or "eq"
    op = flipped.get(op, op)
    if low in INCLUSIVE and re.fullmatch(r"-?\d+", value):
        value = str(int(value) + {"gt": -1, "lt": 1}.get(op, 0))
    return op, value


def _choose_operator(value: str) -> str:
    plain = re.fullmatch(LITERAL, value) is not None
    text = not plain or value[:1] in ("'", '"')
    return "glob" if text and any(mark in value for mark in "*?[{") else "eq"


def _format_predicate(name: str, op: str, value: str) -> str:
    if op == "exists":
        return f"{name} exists"
    value = strip_curly_quotes(value)
    if re.fullmatch(LITERAL, value):
        return f"{name} {op} {value.lower() if value.isalpha() else value}"
    return f"{name} {op} {value}" if " and " in value else f'{name} {op} "{value}"'
