"""How is text made fit to be shown? Names in messages, somebody else's words, and every character that is not seen.

Each way of escaping says for whom it is. Which name was probably meant stands here too.
"""

import re
from collections.abc import Iterable, Iterator
from unicodedata import category, combining

LONGEST = 60
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""For a class of a pattern: what turns the direction of reading, is blank, or chooses how its neighbour looks."""


def quote_text(text: str) -> str:
    """Somebody else's words in backticks: one line, nothing unprintable, not longer than a reader needs."""
    shown = replace_unprintable(text[: LONGEST + 1]).replace("`", "?")
    return f"`{shown[:LONGEST]}…`" if len(shown) > LONGEST else f"`{shown}`"


def quote_exactly(text: str, longest: int = LONGEST) -> str:
    """The same with every character that is not seen written out, for whoever has to find it in a file of theirs."""
    short = text if len(text) <= longest else text[: longest - 3] + "..."
    return "`" + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in short) + "`"


def find_nearest_name(wrong: str, names: Iterable[str]) -> str | None:
    """The name that differs least, where one is near enough to be what was meant; the same answer every time."""
    from difflib import get_close_matches  # a millisecond that only a mistake costs

    known = sorted(set(names))
    by_fold = {name.casefold(): name for name in reversed(known)}
    near = get_close_matches(wrong[:LONGEST].casefold(), by_fold, n=1, cutoff=0.6)
    return by_fold[near[0]] if near else None


def format_list(words: Iterable[str], last: str = "or") -> str:
    """`a`, `b` or `c`."""
    shown = [quote_text(word) for word in words]
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def format_count(count: int, noun: str, plural: str = "") -> str:
    """`1 call`, `2 calls`, `1,200 entries`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


OPENING, CLOSING = "“”„‘’‚«»`´", "“”‘’«»`´"


def strip_curly_quotes(text: str) -> str:
    """Remove the quotation marks that a word processor put around it."""
    return text[1:-1] if len(text) > 2 and text[0] in OPENING and text[-1] in CLOSING else text


def shorten_text(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[:most] + "…"


def shorten_to_line(text: str, most: int) -> str:
    """On one line, and not longer than this."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def replace_unprintable(text: str, by: str = "?") -> str:
    return text if text.isprintable() else "".join(sign if sign.isprintable() else by for sign in text)


def to_printable_ascii(text: str) -> str:
    """What a stranger wrote, fit for one line of a message."""
    return replace_unprintable(text[:200]).encode("ascii", "replace").decode()


def escape_surrogates(text: str) -> str:
    """Names on disk need not be text: half a surrogate pair is written out, so that what holds one can be sent."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


# For a model, which may have to type it again: `\x1b`, `\u{200b}`.

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""What moves a cursor, rings or speaks to a terminal, but for tab and line end."""
HARMFUL = re.compile(f"[{CONTROLS}\udc80-\udcff]")
UNSEEN = re.compile(
    f"[{CONTROLS}{INVISIBLE}\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u2028\u2029\ud800-\udfff"
    "\U000110bd\U000110cd\U00013430-\U0001343f]"
)
"""With it what joins, hides or ends a line, and what is no text at all."""


def make_visible(text: str) -> str:
    """What hurts a terminal, and bytes that are no UTF-8. The rest is as it is, so that `Edit` finds it again."""
    return HARMFUL.sub(_escape_character, text)


def to_plain_text(text: bytes | str) -> str:
    """As text that can be sent and seen: bytes that are no UTF-8 and unseen characters become escapes."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return UNSEEN.sub(_escape_character, text)


def to_one_line(text: bytes | str, most: int = 200) -> str:
    """On one line, whatever it says."""
    shown = to_plain_text(text).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escape_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # how Python carries a byte that is no UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


# For the person at a terminal, as Python writes it.


def escape_unprintable(text: str) -> str:
    """Some of what is shown was written by a model or a client; none of it may speak to the terminal."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode() for sign in text
    )


# For the person who is asked, as JSON: every character of an argument is seen and can be read back exactly.

BLANK = frozenset("\u2800\ufe0e\ufe0f\u200d\U00016fe4\U0001d159")
"""Printable by name, and shown as nothing or as a space."""
HIDDEN = re.compile(f"[{INVISIBLE}]")
OVERLAY = 1
"""The combining class of what is drawn over the character before it."""
MOST_MARKS = 2
"""More of them on one letter are there to cover its neighbours."""
MEANT = re.compile(r'["\\]')
"""What would be read as the end of the text, or as an escape."""
SHORT = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape_as_json(text: str) -> str:
    """On one line, and with nothing in it that is not seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if seen else _escape_as_halves(char) for char, seen in _check_visibility(text))


def quote_as_json(text: str) -> str:
    return '"' + escape_as_json(MEANT.sub(r"\\\g<0>", text)) + '"'


def _check_visibility(text: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it may stand for itself."""
    letter, marks = False, 0
    for char in text:
        if char.isascii():
            letter, marks = False, 0
            yield char, char.isprintable()
            continue
        seen = char.isprintable() and char not in BLANK and not HIDDEN.match(char)
        if category(char).startswith("M"):
            # After a letter that takes marks, as scripts need them; elsewhere one hides what is before it.
            marks += 1
            yield char, seen and letter and marks <= MOST_MARKS and combining(char) != OVERLAY
        else:
            letter, marks = seen and char.isalpha(), 0
            yield char, seen


def _escape_as_halves(char: str) -> str:
    if char in SHORT:
        return SHORT[char]
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    # As JSON has it: two halves.
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
