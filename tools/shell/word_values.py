"""What will a word be, if the line itself gives its variables their values?"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

from msgspec import Struct

from mcp_server.model.shell import ShellLine, ShellWord, WordRole
from tools.shell.arithmetic import read_delimited
from tools.shell.expansions import COUNT
from tools.shell.lines import read_line

MOST_TEXTS = 16
OWN_TEMPORARY = "/tmp/tmp.XXXXXXXXXX"  # noqa: S108  # what `mktemp` prints looks like this
HERE = "\x01"
"""Stands for the folder where the line began. No line that is judged contains this character."""
DIGITS = re.compile("-?[0-9]+")
BARE = r"[\w./:@%+=,^-]"
SAFE = re.compile(rf"{BARE}+", re.ASCII)
"""Text that stays one word without quotes."""
SPECIAL_IN_QUOTES = re.compile(r"[$`\"\\]")
NAME = r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})"
SUM = r"\$\(\((?:[^()`'\"\\]|\([^()`'\"\\]*\))*\)\)"
PIECE = re.compile(
    rf"(?P<single>'[^']*')|(?P<double>\"(?:[^\"\\`$]|{NAME}|{COUNT}|\$!|{SUM})*\")|(?P<name>{NAME})|(?P<count>{COUNT}|{SUM})"
    rf"|(?P<job>\$!)|(?P<glob>[*?])|(?P<bare>{BARE}+)",
    re.ASCII,
)
INNER = re.compile(rf"(?P<name>{NAME})|(?P<count>{COUNT}|\$!|{SUM})|(?P<text>[^$]+)", re.ASCII)
COMPUTED = re.compile(r"\"?(\$\(.*\)|`[^`]*`)\"?", re.DOTALL)
TEMPORARY = re.compile(r"mktemp(?: -d| -q| --directory)*(?: /tmp/[\w.-]*X{6,})?|mktemp(?: -d)? -t [\w.-]*X{3,}[\w.]*")
CURRENT_FOLDER = frozenset(("$PWD", "${PWD}", "$(pwd)", "`pwd`"))
COUNTING = re.compile(r"wc (?:-[lcmw]|--lines|--bytes|--chars|--words)|nproc|date \+%s|id -[ug]|date \+%[YmdHMSs]+")
SEQUENCE = re.compile(r"seq(?: -?\d+){1,3}")
RANGE = re.compile(r"\{(-?\d{1,4})\.\.(-?\d{1,4})\}")


class Value(Struct, frozen=True):
    texts: frozenset[str] | None = None
    """All that it can be, if that is known."""
    is_number: bool = False
    is_job: bool = False
    """The number of a process that the line has started."""
    is_name: bool = False
    """The name of a file below the current folder, as a pattern finds it."""

    def is_counting(self) -> bool:
        """True if it is a number, or nothing."""
        return self.is_number or (
            self.texts is not None and all(DIGITS.fullmatch(one) or not one for one in self.texts)
        )


UNKNOWN = Value()
NUMBER = Value(is_number=True)
JOB = Value(is_number=True, is_job=True)
FOUND = Value(is_name=True)
EMPTY = Value(frozenset(("",)))
Find: TypeAlias = Callable[[str], Value]


class Spelling(Struct, frozen=True):
    """One of the words that a word may become."""

    text: str
    source: str
    is_number: bool = False
    """A part of the text stands for any number."""


def join_values(one: Value, other: Value) -> Value:
    if one == other:
        return one
    if one.texts is not None and other.texts is not None and len(both := one.texts | other.texts) <= MOST_TEXTS:
        return Value(both)
    if one.is_counting() and other.is_counting():
        return NUMBER
    return UNKNOWN


def evaluate_word(source: str, find: Find) -> Value:
    """Evaluate what an assignment sets."""
    if source.strip('"') == "$!":
        return JOB
    if source.strip('"') in CURRENT_FOLDER:
        return Value(frozenset((HERE,)))
    if computed := COMPUTED.fullmatch(source):
        return _evaluate_computed(computed[1], find)
    spellings = spell_source(source, find, is_setting=True)
    if spellings is None:
        return UNKNOWN
    if any(one.is_number for one in spellings):
        return NUMBER if all(DIGITS.fullmatch(one.text) for one in spellings) else UNKNOWN
    return Value(frozenset(one.text for one in spellings))


def _evaluate_computed(source: str, find: Find) -> Value:
    if source.startswith("$(("):
        return NUMBER if read_delimited(source) else UNKNOWN
    text = (source[2:-1] if source.startswith("$(") else source[1:-1]).strip()
    if TEMPORARY.fullmatch(text):
        return Value(frozenset((OWN_TEMPORARY,)))
    line = read_line(text)
    return NUMBER if line is not None and (_counts(line) or _is_sequence(text, find)) else UNKNOWN


def _counts(line: ShellLine) -> bool:
    """True if the last program of one pipeline prints nothing but a number."""
    last = line.commands[-1] if line.commands else None
    if last is None or any(one.joined not in ("|",) for one in line.commands[:-1]) or last.joined.strip():
        return False
    words = [word for word in last.words if word.role is not WordRole.TARGET]
    targets = [word.source for word in last.words if word.role is WordRole.TARGET]
    written = " ".join(word.source for word in words)
    return COUNTING.fullmatch(written) is not None and all(one.startswith(("<", "2>")) for one in targets)


def _is_sequence(text: str, find: Find) -> bool:
    """True of `seq 3` and `seq 1 $n`: numbers, one in each line."""
    numbered = re.sub(NAME, lambda found: "1" if find(found[0].strip("${}")).is_counting() else found[0], text)
    return SEQUENCE.fullmatch(numbered) is not None


def evaluate_elements(words: Sequence[ShellWord], find: Find) -> Value:
    """Evaluate the elements of an array, or the words that a loop goes through."""
    found: Value | None = None
    for word in words:
        for value in _evaluate_element(word, find):
            found = value if found is None else join_values(found, value)
    return found if found is not None else EMPTY


def _evaluate_element(word: ShellWord, find: Find) -> Iterator[Value]:
    if span := RANGE.fullmatch(word.source):
        first, last = sorted((int(span[1]), int(span[2])))
        is_short = last - first < MOST_TEXTS and not re.search(r"(?<!\d)0\d", word.source)
        yield Value(frozenset(map(str, range(first, last + 1)))) if is_short else NUMBER
    elif array := re.fullmatch(r"\"?\$\{(\w+)\[[@*]\]\}\"?", word.source):
        value = find(array[1])
        is_one = word.source.startswith('"') and "[@]" in word.source
        is_safe = value.texts is not None and all(SAFE.fullmatch(one) for one in value.texts)
        yield value if is_one or is_safe or value.is_number else UNKNOWN
    elif (computed := COMPUTED.fullmatch(word.source)) and not word.source.startswith('"'):
        value = _evaluate_computed(computed[1], find)
        yield value if value.is_number else UNKNOWN
    elif re.fullmatch(r"(?!/)[\w./-]*[*?][\w.*?/-]*", word.source):
        yield FOUND
    else:
        yield evaluate_loop_word(word.source, find)


def evaluate_loop_word(source: str, find: Find) -> Value:
    spellings = spell_source(source, find)
    if spellings is None or any(one.is_number and not DIGITS.fullmatch(one.text) for one in spellings):
        return UNKNOWN
    if any(one.is_number for one in spellings):
        return NUMBER
    return Value(frozenset(one.text for one in spellings))


def spell_source(source: str, find: Find, is_setting: bool = False) -> Sequence[Spelling] | None:
    """Return every word that this may become, written out; None if that is not known, or if these are too many.

    bash splits no words in what an assignment sets, so there the values need no quotes."""
    pieces, at = list[Sequence[Spelling]](), 0
    while at < len(source):
        piece = PIECE.match(source, at)
        found = _spell_piece(piece, find, is_setting) if piece else None
        if piece is None or found is None:
            return None
        pieces.append(found)
        at = piece.end()
    if any(len(one) > MOST_TEXTS for one in pieces):
        return None
    words = [_join_spellings(one) for one in list(product(*pieces))[: MOST_TEXTS + 1]]
    if len(words) > MOST_TEXTS or not all(_is_whole(word.text) for word in words):
        return None
    return words


PLACES = (OWN_TEMPORARY, HERE)


def _is_whole(text: str) -> bool:
    """Such a place has a name of its own. And `mktemp` may have failed: then nothing stands in front of the rest."""
    return all(one not in text or re.fullmatch(rf"{re.escape(one)}(?:/.*)?", text, re.DOTALL) for one in PLACES)


def _join_spellings(parts: Sequence[Spelling]) -> Spelling:
    return Spelling(
        "".join(one.text for one in parts), "".join(one.source for one in parts), any(one.is_number for one in parts)
    )


def _spell_piece(piece: re.Match[str], find: Find, is_setting: bool) -> Sequence[Spelling] | None:
    text = piece[0]
    if piece["single"]:
        return [Spelling(text[1:-1], text)]
    if piece["double"]:
        return _spell_quoted(text[1:-1], find)
    if piece["bare"]:
        return [Spelling(text, text)]
    if piece["glob"]:
        return None if is_setting else [Spelling(text, text)]
    if piece["name"]:
        return _spell_value(find(text.strip("${}")), is_quoted=is_setting)
    if piece["count"]:
        return [Spelling("0", "0", is_number=True)] if not text.startswith("$((") or read_delimited(text) else None
    return [Spelling("0", "0", is_number=True)] if is_setting else None


def _spell_quoted(text: str, find: Find) -> Sequence[Spelling] | None:
    pieces = list[Sequence[Spelling]]()
    if not text:
        pieces.append([Spelling("", "''")])
    for piece in INNER.finditer(text):
        if piece["name"]:
            found = _spell_value(find(piece[0].strip("${}")), is_quoted=True)
            if found is None:
                return None
            pieces.append(found)
        elif piece["count"]:
            if piece[0].startswith("$((") and not read_delimited(piece[0]):
                return None
            pieces.append([Spelling("0", "0", is_number=True)])
        elif (quoted := _quote(piece[0])) is not None:
            pieces.append([Spelling(piece[0], quoted)])
        else:
            return None
    if any(len(one) > MOST_TEXTS for one in pieces):
        return None
    return [_join_spellings(one) for one in list(product(*pieces))[: MOST_TEXTS + 1]]


def _spell_value(value: Value, is_quoted: bool) -> Sequence[Spelling] | None:
    if value.is_number:
        return [Spelling("0", "0", is_number=True)]
    if value.texts is None:
        return None
    spelled = list[Spelling]()
    for text in sorted(value.texts):
        quoted = _quote(text)
        if quoted is None or (not is_quoted and not SAFE.fullmatch(text)):
            return None
        spelled.append(Spelling(text, quoted))
    return spelled


def _quote(text: str) -> str | None:
    """Write it so that bash takes it as it is."""
    if SAFE.fullmatch(text):
        return text
    if "'" not in text:
        return f"'{text}'"
    return None if SPECIAL_IN_QUOTES.search(text) else f'"{text}"'
