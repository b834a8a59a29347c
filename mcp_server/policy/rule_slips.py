"""Which mistakes make a rule's predicate text that no call matches? Each is described with the spelling that works."""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher

from mcp_server.model.text import find_nearest_name, quote_text

# Something extra or missing: a word before the predicate, `starts with` as an operator, an extra bracket, a path
# as Windows or a shell writes it, a missing star after a command's first words.

NAME = r"-?[A-Za-z_][\w$-]*(?:\.[\w$*-]+)*"
TEXT = r""""[^"]*"|'[^']*'"""
CONJUNCTION = re.compile(
    rf"(?:and|or|if|where|when|unless|that|with)\s+(?P<rest>(?P<name>{NAME})\s+(?P<op>\S+).*)", re.DOTALL
)
PHRASE = re.compile(
    rf"(?P<name>{NAME})\s+(?P<word>(?i:starts|begins|ends|is)(?:[\s_-](?i:with|in|under))?"
    rf"|(?i:under|below|within|inside|beneath))\s+(?P<value>{TEXT})\s*"
)
NEGATED = re.compile(rf"(?P<name>{NAME})\s+(?:is\s+|does\s+)?(?i:not)\s+(?P<op>\S+)(?P<rest>.*)", re.DOTALL)
OPPOSITES = {"exists": "exists false", "exist": "exists false", "set": "exists false", "in": "not_in", "eq": "neq"}
VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?(?=/|$)|%[A-Za-z_]\w*%")
ALIKE = 0.9


def describe_stray_part(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    """Say what is wrong with text in brackets; None if it may be text to match."""
    checks = (_find_leading_word, _find_phrase, _find_negation, _find_extra_bracket, _find_foreign_path, _find_cut_text)
    return next((fault for check in checks for fault in check(text.strip(), arguments, ops, command)), None)


def _find_leading_word(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    match = CONJUNCTION.fullmatch(text)
    if match and match["name"].partition(".")[0] in arguments and match["op"] in ops:
        yield f"{quote_text(text)} is not a predicate; did you mean {quote_text(match['rest'])}?"


def _find_phrase(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    match = PHRASE.fullmatch(text)
    if match is None:
        return
    name, word, value = match["name"], match["word"].lower(), match["value"][1:-1]
    first = name.partition(".")[0]
    if first not in arguments:
        near = None if command else find_nearest_name(first, arguments)
        if near is None:
            return
        name = near + name[len(first) :]
    escaped = re.sub(r"([\\.^$*+?{}\[\]|()\"])", r"\\\1", value).replace("\\", "\\\\")
    if word.startswith(("starts", "begins")):
        predicate = f"{value}:*" if command and name == "command" else f'{name} regex "^{escaped}"'
    elif word.startswith("ends"):
        predicate = f'{name} regex "{escaped}$"'
    elif word == "is":
        predicate = f'{name} eq "{value}"'
    elif word.endswith("in") and word.startswith("is"):
        predicate = f'{name} in ["{value}"]'
    else:
        predicate = f'{name} glob "{value.rstrip("/")}/**"'
    yield f"{quote_text(text)} is not a predicate; did you mean {quote_text(predicate)}?"


def _find_negation(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    match = NEGATED.fullmatch(text)
    if match and match["name"].partition(".")[0] in arguments and (opposite := OPPOSITES.get(match["op"].lower())):
        better = quote_text(match["name"] + " " + opposite + match["rest"])
        yield f"{quote_text(text)} is not a predicate; did you mean {better}?"


def _find_extra_bracket(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """Brackets inside may belong to a folder, as in `src/(group)/**`, or to a subshell."""
    if any(mark in text for mark in "\"'\\"):
        return
    if text.endswith(")") and text.count(")") > text.count("("):
        yield f"there is an extra bracket; did you mean {quote_text(text[:-1])}?"
    elif not command and text.startswith("(") and text.endswith(")") and _is_wrapped(text):
        yield f"there is an extra pair of brackets; did you mean {quote_text(text[1:-1])}?"


def _is_wrapped(text: str) -> bool:
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def _find_foreign_path(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    if command:
        return
    if re.match(r"[A-Za-z]:[\\/]", text):
        yield f"{quote_text(text)} is a Windows path; write it relative to the workspace, with `/`, such as `src/**`"
    elif match := re.search(r"\\(?:\w|\*\*)", text):
        path = text.replace("\\", "/")
        yield f"folders are separated by `/`, not by a backslash; did you mean {quote_text(path)}?"
    elif match := VARIABLE.match(text):
        yield f"a rule does not expand variables such as {quote_text(match[0])}; write the path itself"


def _find_cut_text(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    if command and re.search(r"\w:$", text):
        yield f"something is missing after {quote_text(text)}; did you mean {quote_text(f'{text}*')}?"
    elif not command and re.fullmatch(r"-?\w+", text) and "_" in text and text not in arguments:
        near = find_nearest_name(text, arguments)
        if near and SequenceMatcher(None, text.casefold(), near.casefold()).ratio() >= ALIKE:
            yield f"there is no argument {quote_text(text)}; did you mean {quote_text(f'{near} exists')}?"


# What looks like a predicate but is not one would be a rule that never matches. Only unquoted text is checked: text
# that is meant literally can be quoted.

SYNONYMS: Mapping[str, str] = {
    "eq": "= == === := is equals equal equal_to eqs same",
    "neq": "≠ != !== <> ne isnt is_not not not_eq differs",
    "gt": "≥ > >= => ge gte above over more greater exceeds",
    "lt": "≤ < <= =< le lte below under less",
    "in": "is_in isin one_of oneof among within any_of",
    "not_in": "notin not-in nin none_of",
    "glob": "like fits startswith starts_with endswith ends_with fnmatch",
    "regex": "=~ ~ ~= re matches match regexp",
    "contains": "has holds includes include containing",
    "exists": "present there set defined given",
}
OPERATOR_BY_SYNONYM = {word: op for op, words in SYNONYMS.items() for word in words.split()}
INSTEAD_OF: Mapping[str, str] = {
    "not_exists": "`exists false`",
    "missing": "`exists false`",
    "absent": "`exists false`",
    **dict.fromkeys(("not_glob", "not_regex", "not_contains", "not_like", "not_matches", "!~", "!~="), ""),
}
"""Negated operators, and what to write instead; empty if no operator says it."""
SIGN = re.compile(r"(?P<path>-?[A-Za-z_][\w.$*-]*)(?P<gap>\s*)(?P<sign>[=<>!~:]*[=<>~][=<>~]*)(?=[^=<>~]|$)")
OPPOSITE = re.compile(r"(?:not\b|!|\()\s*(?P<path>-?[A-Za-z_][\w.$*-]*)\s+(?P<op>[\w-]+)")
WORD = re.compile(r"[\w-]+|[^\w\s\"'\[]+")


def describe_wrong_operator(word: str, ops: Collection[str]) -> str | None:
    """Say what is wrong with this operator, and which one was meant; None if it may not be an operator."""
    low = word.lower()
    if low in ops:
        return None if word in ops else f"write `{low}` in lower case"
    if low in INSTEAD_OF:
        instead = INSTEAD_OF[low]
        hint = f"write {instead}" if instead else "say which calls the rule is about, or use another of the four lists"
        return f"there is no operator {quote_text(word)}: {hint}"
    near = OPERATOR_BY_SYNONYM.get(low) or find_nearest_name(low, ops)
    if near is None:
        return None
    off = " with the next lower number" if low in ("≥", ">=", "=>", "ge", "gte") else ""
    off = " with the next higher number" if low in ("≤", "<=", "=<", "le", "lte") else off
    return f"there is no operator {quote_text(word)}; did you mean `{near}`{off}?"


def describe_predicate_slip(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    """Say what is wrong with text in brackets that looks like a predicate; None if it may be text to match.

    `command`: the text is a shell line, in which any word may come second.
    """
    mixed = re.search(rf"\sand\s+-?[A-Za-z_][\w.$*-]*\s+(?:{'|'.join(ops)})(?:\s|$)", text)
    if mixed:
        return f"{quote_text(text[: mixed.start()].strip())} is not a predicate, and `and` joins predicates"
    opposite = OPPOSITE.match(text)
    if (
        opposite
        and _is_argument_named(opposite["path"], arguments)
        and (opposite["op"] in ops or describe_wrong_operator(opposite["op"], ops))
    ):
        return "a predicate cannot contain `not` or brackets; write `neq`, `not_in` or `exists false`"
    if sign_slip := _describe_sign_slip(text, arguments, ops, command):
        return sign_slip
    words = text.split()
    name, known = words[0], words[0].partition(".")[0] in arguments
    if len(words) == 1:
        alone = known and not command
        return f"{quote_text(name)} is the name of an argument; write {quote_text(f'{name} exists')}" if alone else None
    if not known and not _is_argument_named(name, arguments):
        return None
    second = WORD.match(words[1])
    fault = describe_wrong_operator(second[0], ops) if second else None
    if fault is None and second and second[0] in ops and not text[len(name) :].lstrip()[len(second[0]) :][:1].isspace():
        fault = f"add a space after `{second[0]}`"
    if fault is None and known and not command:
        return f"there is no operator {quote_text(words[1])}; the operators are {', '.join(ops)}"
    return fault and f"{fault}{describe_missing_argument(name, arguments)}"


def _describe_sign_slip(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    match = SIGN.match(text)
    if match is None or not (_is_argument_named(match["path"], arguments) or (match["gap"] and not command)):
        return None
    fault = describe_wrong_operator(match["sign"], ops) or f"there is no operator {quote_text(match['sign'])}"
    return fault + describe_missing_argument(match["path"], arguments)


def _is_argument_named(name: str, arguments: Collection[str]) -> bool:
    first = name.partition(".")[0]
    return first in arguments or find_nearest_name(first, arguments) is not None


def describe_missing_argument(name: str, arguments: Collection[str]) -> str:
    """Add that no argument has this name, if so."""
    first = name.partition(".")[0]
    near = find_nearest_name(first, arguments) if first not in arguments else None
    if first in arguments:
        return ""
    return f" There is no argument {quote_text(first)} either{f'; did you mean {quote_text(near)}?' if near else ''}"
