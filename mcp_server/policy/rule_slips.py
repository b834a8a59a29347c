"""Is there something too much or too little in this bracket? It would be a text that no call has.

A word of a sentence before a predicate, `starts with` in an operator's place, a bracket too many, a path as Windows or
a shell writes it, the star that a command's beginning needs.
"""

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from mcp_server.model.text import nearest, quoted

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


def stray(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> str | None:
    """What is wrong with a bracket that was taken for a text to match; None where it can be meant so."""
    about = text.strip(), arguments, ops, command
    looks = (_led, _phrased, _negated, _bracketed, _placed, _cut)
    return next((wrong for look in looks for wrong in look(*about)), None)


def _led(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    found = LED.fullmatch(text)
    if found and found["name"].partition(".")[0] in arguments and found["op"] in ops:
        yield f"{quoted(text)} is no predicate; did you mean {quoted(found['rest'])}?"


def _phrased(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    found = PHRASE.fullmatch(text)
    if found is None:
        return
    name, word, value = found["name"], found["word"].lower(), found["value"][1:-1]
    first = name.partition(".")[0]
    if first not in arguments:
        near = None if command else nearest(first, arguments)
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
    yield f"{quoted(text)} is no predicate; did you mean {quoted(meant)}?"


def _negated(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    found = NEGATED.fullmatch(text)
    if found and found["name"].partition(".")[0] in arguments and (meant := OPPOSITES.get(found["op"].lower())):
        yield f"{quoted(text)} is no predicate; did you mean {quoted(found['name'] + ' ' + meant + found['rest'])}?"


def _bracketed(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    """Brackets inside are a folder's, as in `src/(group)/**`, and a subshell's."""
    if any(mark in text for mark in "\"'\\"):
        return
    if text.endswith(")") and text.count(")") > text.count("("):
        yield f"there is a bracket too many; did you mean {quoted(text[:-1])}?"
    elif not command and text.startswith("(") and text.endswith(")") and _wrapped(text):
        yield f"there is a bracket too many around it; did you mean {quoted(text[1:-1])}?"


def _wrapped(text: str) -> bool:
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def _placed(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    if command:
        return
    if re.match(r"[A-Za-z]:[\\/]", text):
        yield f"{quoted(text)} is a path of Windows; write it from the workspace, with `/`, such as `src/**`"
    elif found := re.search(r"\\(?:\w|\*\*)", text):
        said = text.replace("\\", "/")
        yield f"a backslash before {quoted(found[0][1:])} is no separator; did you mean {quoted(said)}?"
    elif found := VARIABLE.match(text):
        yield f"a rule does not read variables such as {quoted(found[0])}; write the path itself"


def _cut(text: str, arguments: Collection[str], ops: Collection[str], command: bool) -> Iterator[str]:
    if command and re.search(r"\w:$", text):
        yield f"what follows {quoted(text)} is missing; did you mean {quoted(f'{text}*')}?"
    elif not command and re.fullmatch(r"-?\w+", text) and "_" in text and text not in arguments:
        near = nearest(text, arguments)
        if near and SequenceMatcher(None, text.casefold(), near.casefold()).ratio() >= ALIKE:
            yield f"there is no argument {quoted(text)}; did you mean {quoted(f'{near} exists')}?"
