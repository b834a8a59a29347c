"""How is text made safe to show? Names in messages, text from outside, and invisible characters.

There are several ways of escaping; each says which reader it is for. Suggestions of similar names are here, too.
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
    """Quote for a message to a model or client: one short line, with `?` for backticks and unprintable characters."""
    shown = replace_unprintable(text[: LONGEST + 1]).replace("`", "?")
    return f"`{shown[:LONGEST]}…`" if len(shown) > LONGEST else f"`{shown}`"


def quote_exactly(text: str, longest: int = LONGEST) -> str:
    """Quote for a person who must find it in a file: characters that cannot be seen are written out."""
    short = text if len(text) <= longest else text[: longest - 3] + "..."
    return "`" + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in short) + "`"


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


def replace_unprintable(text: str, by: str = "?") -> str:
    return text if text.isprintable() else "".join(sign if sign.isprintable() else by for sign in text)


def to_printable_ascii(text: str) -> str:
    """Reduce an outsider's text to printable ASCII for one line of a message."""
    return replace_unprintable(text[:200]).encode("ascii", "replace").decode()


def escape_surrogates(text: str) -> str:
    """Write out halves of surrogate pairs, as in file names that are not valid text, so that the result can be sent."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


# For a model, which may have to type it again: `\x1b`, `\u{200b}`.

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Characters that control a terminal, except tab and line end."""
HARMFUL = re.compile(f"[{CONTROLS}\udc80-\udcff]")
UNSEEN = re.compile(
    f"[{CONTROLS}{INVISIBLE}\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u2028\u2029\ud800-\udfff"
    "\U000110bd\U000110cd\U00013430-\U0001343f]"
)
"""In addition, characters that join, hide or end a line, and halves of surrogate pairs."""


def make_visible(text: str) -> str:
    """Escape what harms a terminal, and bytes that are not UTF-8. The rest stays, so that `Edit` finds it again."""
    return HARMFUL.sub(_escape_character, text)


def to_plain_text(text: bytes | str) -> str:
    """Escape bytes that are not UTF-8 and characters that cannot be seen."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return UNSEEN.sub(_escape_character, text)


def to_one_line(text: bytes | str, most: int = 200) -> str:
    """Escape, and put it on one line."""
    shown = to_plain_text(text).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # Python's `surrogateescape` for a byte that is not UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


# For the person at a terminal, as Python writes it.


def escape_unprintable(text: str) -> str:
    """Escape what a model or client wrote, so that it cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode() for sign in text
    )


# For a person who is asked to approve, as JSON: every character of an argument is visible and can be read back exactly.

BLANK = frozenset("\u2800\ufe0e\ufe0f\u200d\U00016fe4\U0001d159")
"""Printable according to Unicode, but shown as nothing or as a space."""
HIDDEN = re.compile(f"[{INVISIBLE}]")
OVERLAY = 1
"""The combining class of characters drawn over the one before."""
MAX_MARKS = 2
"""More combining marks on one letter would cover its neighbours."""
JSON_SPECIAL = re.compile(r'["\\]')
SHORT_ESCAPES = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape_as_json(text: str) -> str:
    """Put it on one line, with everything invisible escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if seen else _escape_as_halves(char) for char, seen in _check_visibility(text))


def quote_as_json(text: str) -> str:
    return '"' + escape_as_json(JSON_SPECIAL.sub(r"\\\g<0>", text)) + '"'


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
