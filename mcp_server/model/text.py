"""How is text made safe to show? Names in messages, text from outside, and invisible characters.

There are two ways of escaping: `escape_for_person` for what a person decides on or sees at a terminal, and
`escape_for_model` for what a model gets. The rest quotes, shortens, counts, and suggests similar names.
"""

import re
from collections.abc import Iterable, Iterator
from unicodedata import category, combining

LONGEST = 60
MAX_QUOTED_CHARS = 80
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""For a character class: what turns the reading direction, is blank, or changes how its neighbour looks."""


def quote_text(text: str) -> str:
    """Quote for a message to a model or client: one short line, with `?` for backticks."""
    shown = escape_for_model(text[:LONGEST], one_line=True).replace("`", "?")
    return f"`{shown}…`" if len(text) > LONGEST else f"`{shown}`"


def quote_exactly(text: str, longest: int = LONGEST) -> str:
    """Quote for a person who must find it in a file: characters that cannot be seen are written out."""
    short = text if len(text) <= longest else text[: longest - 3] + "..."
    return f"`{escape_for_person(short, one_line=True)}`"


def find_nearest_name(wrong: str, names: Iterable[str]) -> str | None:
    """Return the most similar name if it is similar enough to be what was meant; deterministic."""
    from difflib import get_close_matches  # a millisecond that only a mistake costs

    known = sorted(set(names))
    by_fold = {name.casefold(): name for name in reversed(known)}
    near = get_close_matches(wrong[:LONGEST].casefold(), by_fold, n=1, cutoff=0.6)
    return by_fold[near[0]] if near else None


def format_list(words: Iterable[str], last: str = "or") -> str:
    """Format as `a`, `b` or `c`."""
    shown = [quote_text(word) for word in words]
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Format as `1 call`, `2 calls`, `1,200 entries`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


OPENING, CLOSING = "“”„‘’‚«»`´", "“”‘’«»`´"


def strip_curly_quotes(text: str) -> str:
    """Remove the curly quotes that a word processor put around it."""
    return text[1:-1] if len(text) > 2 and text[0] in OPENING and text[-1] in CLOSING else text


def shorten_text(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + "…"


def shorten_to_line(text: str, most: int) -> str:
    """Put it on one line of at most this length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def first_sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + dot.strip()


def to_printable_ascii(text: str) -> str:
    """Reduce an outsider's text to printable ASCII for one line of a message."""
    return "".join(sign if sign.isascii() and sign.isprintable() else "?" for sign in text[:200])


# For a model, which may have to type it again.

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Characters that control a terminal, except tab and line end."""
HARMFUL = re.compile(f"[{CONTROLS}\ud800-\udfff]")
HARMFUL_IN_LINE = re.compile(f"[\t\n{CONTROLS}\ud800-\udfff]")
LINE_ENDS = {"\n": "\\n", "\t": "\\t"}


def escape_for_model(text: bytes | str, one_line: bool = False) -> str:
    """Escape what harms a terminal or cannot be sent: C0 except tab and line end, DEL, C1, and halves of characters.

    Everything else stays, joiners, marks and direction signs too, so that `Edit` finds again what `Read` shows.
    `one_line` also escapes tabs and line ends, for a name that must not look like several.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return (HARMFUL_IN_LINE if one_line else HARMFUL).sub(_escape_character, text)


def escape_name(name: bytes | str) -> str:
    """Escape a path or another name for a model, so that it stays one line."""
    return escape_for_model(name, one_line=True)


def to_one_line(text: bytes | str, most: int = 200) -> str:
    """Escape for a model, on one line of at most this length."""
    shown = escape_for_model(text, one_line=True)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # Python's `surrogateescape` for a byte that is not UTF-8
    return LINE_ENDS.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


# For a person, as JSON: every character is visible, and in a question it can be read back exactly.

BLANK = frozenset("\u2800\ufe0e\ufe0f\u200d\ufffc\U00013441\U00013442\U00016fe4\U0001d159\U0001da7f\U0001da80")
"""Printable according to Unicode, but shown as nothing or as a space."""
HIDDEN = re.compile(f"[{INVISIBLE}]")
OVERLAY = 1
"""The combining class of characters drawn over the one before."""
MAX_MARKS = 2
"""More combining marks on one letter would cover its neighbours."""
JSON_SPECIAL = re.compile(r'["\\]')
SHORT_ESCAPES = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape_for_person(text: str, one_line: bool = False) -> str:
    """Escape everything that a screen would not show or would obey: controls, what turns the reading direction, what
    has no width, and what looks like a space or a line end. `one_line` also escapes tabs and line ends."""
    if text.isascii() and text.isprintable():
        return text
    kept = "" if one_line else "\n\t"
    return "".join(char if seen or char in kept else _escape_as_halves(char) for char, seen in _check_visibility(text))


def quote_as_json(text: str) -> str:
    if '"' not in text and "\\" not in text and text.isascii() and text.isprintable():
        return f'"{text}"'
    return '"' + escape_for_person(JSON_SPECIAL.sub(r"\\\g<0>", text), one_line=True) + '"'


def _check_visibility(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character, and True if it can be shown as it is."""
    letter, marks = False, 0
    for char in text:
        if char.isascii():
            letter, marks = False, 0
            yield char, char.isprintable()
            continue
        seen = char.isprintable() and char not in BLANK and not HIDDEN.match(char)
        if category(char).startswith("M"):
            # Scripts need marks on letters; elsewhere a mark hides the character before it.
            marks += 1
            yield char, seen and letter and marks <= MAX_MARKS and combining(char) != OVERLAY
        else:
            letter, marks = seen and char.isalpha(), 0
            yield char, seen


def _escape_as_halves(char: str) -> str:
    if char in SHORT_ESCAPES:
        return SHORT_ESCAPES[char]
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    # JSON writes these as two surrogates.
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
