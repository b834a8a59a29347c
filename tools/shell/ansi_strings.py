"""What does a program get for `$'…'`?"""

import re

ANSI_STRING = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
"""The grammar takes the end of `$'a\\\\'` for an escaped quote, and the commands behind it for text."""
PLAIN = re.compile(r"\$'((?:[^'\\]|\\[nt\\\"?])*)'")
ESCAPE = re.compile(r"\\(.)")
MEANING = {"n": "\n", "t": "\t"}


def is_whole_ansi_string(source: str) -> bool:
    return ANSI_STRING.fullmatch(source) is not None


def decode_ansi_string(source: str) -> str | None:
    """Return the text, unless it holds characters that a line may not hold, or that do not show.

    `\\'` is left out as well: whoever looks for quotes in a word would find the wrong end."""
    found = PLAIN.fullmatch(source)
    return ESCAPE.sub(lambda escape: MEANING.get(escape[1], escape[1]), found[1]) if found else None
