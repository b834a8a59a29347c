"""How are names and values written in messages, and which name did a wrong one probably mean?"""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 60


def quote_text(text: str) -> str:
    """Quote somebody else's words in backticks: on one line, nothing unprintable, no longer than a reader needs."""
    shown = "".join(char if char.isprintable() and char != "`" else "?" for char in text[: LONGEST + 1])
    return f"`{shown[:LONGEST]}…`" if len(shown) > LONGEST else f"`{shown}`"


def find_nearest_name(wrong: str, names: Iterable[str]) -> str | None:
    """Return the closest name, if one is close enough to be what was meant; always the same one."""
    known = sorted(set(names))
    by_fold = {name.casefold(): name for name in reversed(known)}
    near = get_close_matches(wrong[:LONGEST].casefold(), by_fold, n=1, cutoff=0.6)
    return by_fold[near[0]] if near else None


def format_list(words: Iterable[str], last: str = "or") -> str:
    """`a`, `b` or `c`."""
    shown = [quote_text(word) for word in words]
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


OPENING, CLOSING = "“”„‘’‚«»`´", "“”‘’«»`´"


def strip_curly_quotes(text: str) -> str:
    """Remove the quotation marks that a word processor put around it."""
    return text[1:-1] if len(text) > 2 and text[0] in OPENING and text[-1] in CLOSING else text
