"""Was this meant as a predicate? What looks like one and is none would be a rule that never speaks.

Only an unquoted bracket is looked at: whoever means such a text puts it in quotes.
"""

import re
from collections.abc import Collection, Mapping

from mcp_server.model.text import nearest, quoted

SAYINGS: Mapping[str, str] = {
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
MEANT = {word: op for op, words in SAYINGS.items() for word in words.split()}
NEGATED: Mapping[str, str] = {
    "not_exists": "`exists false`",
    "missing": "`exists false`",
    "absent": "`exists false`",
    **dict.fromkeys(("not_glob", "not_regex", "not_contains", "not_like", "not_matches", "!~", "!~="), ""),
}
"""What says the opposite, and what to write for it; nothing where no operator does."""
SIGN = re.compile(r"(?P<path>-?[A-Za-z_][\w.$*-]*)(?P<gap>\s*)(?P<sign>[=<>!~:]*[=<>~][=<>~]*)(?=[^=<>~]|$)")
OPPOSITE = re.compile(r"(?:not\b|!|\()\s*(?P<path>-?[A-Za-z_][\w.$*-]*)\s+(?P<op>[\w-]+)")
WORD = re.compile(r"[\w-]+|[^\w\s\"'\[]+")


def operator(word: str, ops: Collection[str]) -> str | None:
    """What is wrong with this operator, and which one was meant; None where it may be no operator at all."""
    low = word.lower()
    if low in ops:
        return None if word in ops else f"`{low}` is written in small letters"
    if low in NEGATED:
        instead = NEGATED[low]
        there = f"write {instead}" if instead else "say which calls the rule is about, or use another of the four lists"
        return f"there is no operator {quoted(word)}: {there}"
    near = MEANT.get(low) or nearest(low, ops)
    if near is None:
        return None
    off = " with the next lower number" if low in ("≥", ">=", "=>", "ge", "gte") else ""
    off = " with the next higher number" if low in ("≤", "<=", "=<", "le", "lte") else off
    return f"there is no operator {quoted(word)}; did you mean `{near}`{off}?"


def slip(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    """What is wrong with a bracket that was taken for a text to match; None where it can be meant so.

    `command`: the text is a line of shell, in which many a word may come second.
    """
    mixed = re.search(rf"\sand\s+-?[A-Za-z_][\w.$*-]*\s+(?:{'|'.join(ops)})(?:\s|$)", text)
    if mixed:
        return f"{quoted(text[: mixed.start()].strip())} is no predicate, and `and` joins predicates"
    opposite = OPPOSITE.match(text)
    if opposite and _named(opposite["path"], arguments) and (opposite["op"] in ops or operator(opposite["op"], ops)):
        return "a predicate has no `not` and no brackets: `neq`, `not_in` and `exists false` say the opposite"
    if found := _signed(text, arguments, ops, command):
        return found
    words = text.split()
    name, known = words[0], words[0].partition(".")[0] in arguments
    if len(words) == 1:
        alone = known and not command
        return f"{quoted(name)} is an argument's name; write {quoted(f'{name} exists')}" if alone else None
    if not known and not _named(name, arguments):
        return None
    second = WORD.match(words[1])
    wrong = operator(second[0], ops) if second else None
    if wrong is None and second and second[0] in ops and not text[len(name) :].lstrip()[len(second[0]) :][:1].isspace():
        wrong = f"a blank is missing behind `{second[0]}`"
    if wrong is None:
        return f"there is no operator {quoted(words[1])}; there are {', '.join(ops)}" if known and not command else None
    return f"{wrong}{missing(name, arguments)}"


def _signed(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    found = SIGN.match(text)
    if found is None or not (_named(found["path"], arguments) or (found["gap"] and not command)):
        return None
    wrong = operator(found["sign"], ops) or f"there is no operator {quoted(found['sign'])}"
    return wrong + missing(found["path"], arguments)


def _named(name: str, arguments: Collection[str]) -> bool:
    first = name.partition(".")[0]
    return first in arguments or nearest(first, arguments) is not None


def missing(name: str, arguments: Collection[str]) -> str:
    """What else is wrong, where no argument is called like this."""
    first = name.partition(".")[0]
    near = nearest(first, arguments) if first not in arguments else None
    if first in arguments:
        return ""
    return f" There is no argument {quoted(first)} either{f'; did you mean {quoted(near)}?' if near else ''}"
