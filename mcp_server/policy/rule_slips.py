"""What looks like a rule's predicate and is none?"""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher

from mcp_server.model.text import find_nearest_name, quote_text

# Is there something too much or too little in this bracket? It would be a text that no call has.
#
# A word of a sentence before a predicate, `starts with` in an operator's place, a bracket too many, a path as Windows
# or a shell writes it, the star that a command's beginning needs.

NAME = r"-?[A-Za-z_][\w$-]*(?:\.[\w$*-]+)*"
TEXT = r""""[^"]*"|'[^']*'"""
LED = re.compile(rf"(?:and|or|if|where|when|unless|that|with)\s+(?P<rest>(?P<name>{NAME})\s+(?P<op>\S+).*)", re.DOTALL)
PHRASE = re.compile(
    rf"(?P<name>{NAME})\s+(?P<word>(?i:starts|begins|ends|is)(?:[\s_-](?i:with|in|under))?"
    rf"|(?i:under|below|within|inside|beneath))\s+(?P<value>{TEXT})\s*"
)
NEGATED = re.compile(rf"(?P<name>{NAME})\s+(?:is\s+|does\s+)?(?i:not)\s+(?P<op>\S+)(?P<rest>.*)", re.DOTALL)
OPPOSITES = {"exists": "exists false", "exist": "exists false", "set": "exists false", "in": "not_in", "eq": "neq"}
VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?(?=/|$)|%[A-Za-z_]\w*%")
ALIKE = 0.9


def describe_stray_part(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    """What is wrong with a bracket that was taken for a text to match; None where it can be meant so."""
    about = text.strip(), arguments, ops, command
    looks = (_find_leading_word, _find_phrase, _find_negation, _find_extra_bracket, _find_foreign_path, _find_cut_text)
    return next((wrong for look in looks for wrong in look(*about)), None)


def _find_leading_word(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    found = LED.fullmatch(text)
    if found and found["name"].partition(".")[0] in arguments and found["op"] in ops:
        yield f"{quote_text(text)} is no predicate; did you mean {quote_text(found['rest'])}?"


def _find_phrase(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    found = PHRASE.fullmatch(text)
    if found is None:
        return
    name, word, value = found["name"], found["word"].lower(), found["value"][1:-1]
    first = name.partition(".")[0]
    if first not in arguments:
        near = None if command else find_nearest_name(first, arguments)
        if near is None:
            return
        name = near + name[len(first) :]
    escaped = re.sub(r"([\\.^$*+?{}\[\]|()\"])", r"\\\1", value).replace("\\", "\\\\")
    if word.startswith(("starts", "begins")):
        meant = f"{value}:*" if command and name == "command" else f'{name} regex "^{escaped}"'
    elif word.startswith("ends"):
        meant = f'{name} regex "{escaped}$"'
    elif word == "is":
        meant = f'{name} eq "{value}"'
    elif word.endswith("in") and word.startswith("is"):
        meant = f'{name} in ["{value}"]'
    else:
        meant = f'{name} glob "{value.rstrip("/")}/**"'
    yield f"{quote_text(text)} is no predicate; did you mean {quote_text(meant)}?"


def _find_negation(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    found = NEGATED.fullmatch(text)
    if found and found["name"].partition(".")[0] in arguments and (meant := OPPOSITES.get(found["op"].lower())):
        better = quote_text(found["name"] + " " + meant + found["rest"])
        yield f"{quote_text(text)} is no predicate; did you mean {better}?"


def _find_extra_bracket(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """Brackets inside are a folder's, as in `src/(group)/**`, and a subshell's."""
    if any(mark in text for mark in "\"'\\"):
        return
    if text.endswith(")") and text.count(")") > text.count("("):
        yield f"there is a bracket too many; did you mean {quote_text(text[:-1])}?"
    elif not command and text.startswith("(") and text.endswith(")") and _is_wrapped(text):
        yield f"there is a bracket too many around it; did you mean {quote_text(text[1:-1])}?"


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
        yield f"{quote_text(text)} is a path of Windows; write it from the workspace, with `/`, such as `src/**`"
    elif found := re.search(r"\\(?:\w|\*\*)", text):
        said = text.replace("\\", "/")
        yield f"a backslash before {quote_text(found[0][1:])} is no separator; did you mean {quote_text(said)}?"
    elif found := VARIABLE.match(text):
        yield f"a rule does not read variables such as {quote_text(found[0])}; write the path itself"


def _find_cut_text(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    if command and re.search(r"\w:$", text):
        yield f"what follows {quote_text(text)} is missing; did you mean {quote_text(f'{text}*')}?"
    elif not command and re.fullmatch(r"-?\w+", text) and "_" in text and text not in arguments:
        near = find_nearest_name(text, arguments)
        if near and SequenceMatcher(None, text.casefold(), near.casefold()).ratio() >= ALIKE:
            yield f"there is no argument {quote_text(text)}; did you mean {quote_text(f'{near} exists')}?"


# Was this meant as a predicate? What looks like one and is none would be a rule that never speaks.
#
# Only an unquoted bracket is looked at: whoever means such a text puts it in quotes.

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
INSTEAD_OF: Mapping[str, str] = {
    "not_exists": "`exists false`",
    "missing": "`exists false`",
    "absent": "`exists false`",
    **dict.fromkeys(("not_glob", "not_regex", "not_contains", "not_like", "not_matches", "!~", "!~="), ""),
}
"""What says the opposite, and what to write for it; nothing where no operator does."""
SIGN = re.compile(r"(?P<path>-?[A-Za-z_][\w.$*-]*)(?P<gap>\s*)(?P<sign>[=<>!~:]*[=<>~][=<>~]*)(?=[^=<>~]|$)")
OPPOSITE = re.compile(r"(?:not\b|!|\()\s*(?P<path>-?[A-Za-z_][\w.$*-]*)\s+(?P<op>[\w-]+)")
WORD = re.compile(r"[\w-]+|[^\w\s\"'\[]+")


def describe_wrong_operator(word: str, ops: Collection[str]) -> str | None:
    """What is wrong with this operator, and which one was meant; None where it may be no operator at all."""
    low = word.lower()
    if low in ops:
        return None if word in ops else f"`{low}` is written in small letters"
    if low in INSTEAD_OF:
        instead = INSTEAD_OF[low]
        there = f"write {instead}" if instead else "say which calls the rule is about, or use another of the four lists"
        return f"there is no operator {quote_text(word)}: {there}"
    near = MEANT.get(low) or find_nearest_name(low, ops)
    if near is None:
        return None
    off = " with the next lower number" if low in ("≥", ">=", "=>", "ge", "gte") else ""
    off = " with the next higher number" if low in ("≤", "<=", "=<", "le", "lte") else off
    return f"there is no operator {quote_text(word)}; did you mean `{near}`{off}?"


def describe_predicate_slip(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    """What is wrong with a bracket that was taken for a text to match; None where it can be meant so.

    `command`: the text is a line of shell, in which many a word may come second.
    """
    mixed = re.search(rf"\sand\s+-?[A-Za-z_][\w.$*-]*\s+(?:{'|'.join(ops)})(?:\s|$)", text)
    if mixed:
        return f"{quote_text(text[: mixed.start()].strip())} is no predicate, and `and` joins predicates"
    opposite = OPPOSITE.match(text)
    if (
        opposite
        and _is_argument_named(opposite["path"], arguments)
        and (opposite["op"] in ops or describe_wrong_operator(opposite["op"], ops))
    ):
        return "a predicate has no `not` and no brackets: `neq`, `not_in` and `exists false` say the opposite"
    if found := _describe_sign_slip(text, arguments, ops, command):
        return found
    words = text.split()
    name, known = words[0], words[0].partition(".")[0] in arguments
    if len(words) == 1:
        alone = known and not command
        return f"{quote_text(name)} is an argument's name; write {quote_text(f'{name} exists')}" if alone else None
    if not known and not _is_argument_named(name, arguments):
        return None
    second = WORD.match(words[1])
    wrong = describe_wrong_operator(second[0], ops) if second else None
    if wrong is None and second and second[0] in ops and not text[len(name) :].lstrip()[len(second[0]) :][:1].isspace():
        wrong = f"a blank is missing behind `{second[0]}`"
    if wrong is None:
        return (
            f"there is no operator {quote_text(words[1])}; there are {', '.join(ops)}"
            if known and not command
            else None
        )
    return f"{wrong}{describe_missing_argument(name, arguments)}"


def _describe_sign_slip(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    found = SIGN.match(text)
    if found is None or not (_is_argument_named(found["path"], arguments) or (found["gap"] and not command)):
        return None
    wrong = describe_wrong_operator(found["sign"], ops) or f"there is no operator {quote_text(found['sign'])}"
    return wrong + describe_missing_argument(found["path"], arguments)


def _is_argument_named(name: str, arguments: Collection[str]) -> bool:
    first = name.partition(".")[0]
    return first in arguments or find_nearest_name(first, arguments) is not None


def describe_missing_argument(name: str, arguments: Collection[str]) -> str:
    """What else is wrong, where no argument is called like this."""
    first = name.partition(".")[0]
    near = find_nearest_name(first, arguments) if first not in arguments else None
    if first in arguments:
        return ""
    return f" There is no argument {quote_text(first)} either{f'; did you mean {quote_text(near)}?' if near else ''}"
