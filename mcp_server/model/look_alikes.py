"""Which letters and signs of a text can be taken for others? For a person who decides on a command or a path."""

from collections.abc import Iterator
from itertools import islice
from unicodedata import category, decomposition, name, normalize

SHAPES = frozenset(("<wide>", "<narrow>", "<font>", "<small>", "<compat>"))
"""Variants of a character that differ from it in nothing but how they are drawn."""
SIGNS = {
    **dict.fromkeys("\u2044\u2215\u29f8\u2571\u1735", "/"),
    **dict.fromkeys("\u2010\u2011\u2012\u2212\u02d7", "-"),
    **dict.fromkeys("\u2236\ua789\u02d0\u0589", ":"),
    **dict.fromkeys("\u2223\u01c0\u05c0", "|"),
    **dict.fromkeys("\u2217\u204e", "*"),
    **dict.fromkeys("\u02dc\u223c", "~"),
    **dict.fromkeys("\u29f5\u2216", "\\"),
    **dict.fromkeys("\ua4f8\u06d4", "."),
    **dict.fromkeys("\u037e", ";"),
}
"""Signs that mean something in a command or a path, and what looks like them."""
DISGUISED = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u0501"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"
    "\u03bf\u03bd\u03c1\u03b1\u03ba\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
"""Cyrillic and Greek letters that look like Latin ones: a word of nothing else may pass for a Latin word."""
MAX_SHOWN = 5


def find_look_alikes(text: str, most: int = MAX_SHOWN) -> list[tuple[str, str]]:
    """Return characters that can be taken for others, each with what it is."""
    return [] if text.isascii() else list(islice(dict(_find_all(text)).items(), most))


def _find_all(text: str) -> Iterator[tuple[str, str]]:
    for word in _split_words(text):
        scripts = {_get_script(letter) for letter in word if category(letter) in ("Lu", "Ll", "Lt")}
        mixed = "LATIN" in scripts and len(scripts) > 1
        for letter in word:
            script = _get_script(letter)
            if plain := _find_plain(letter):
                yield letter, f"is not {plain}"
            elif script != "LATIN" and category(letter) in ("Lu", "Ll", "Lt") and (mixed or DISGUISED.issuperset(word)):
                yield letter, f"is {script.capitalize()}"


def _split_words(text: str) -> Iterator[str]:
    """Yield runs of letters, and every other character by itself."""
    start = 0
    for at, character in enumerate(text):
        if not character.isalpha():
            if start < at:
                yield text[start:at]
            yield character
            start = at + 1
    if start < len(text):
        yield text[start:]


def _get_script(letter: str) -> str:
    script = "LATIN" if letter.isascii() else name(letter, "unknown").partition(" ")[0]
    return "LATIN" if script == "MICRO" else script  # as in microseconds


def _find_plain(character: str) -> str:
    """Return the ASCII character that it looks like; empty if none."""
    if character.isascii():
        return ""
    shape = decomposition(character).partition(" ")[0]
    plain = normalize("NFKC", character) if shape in SHAPES or (shape and not shape.startswith("<")) else ""
    return plain if len(plain) == 1 and plain.isascii() and plain.isprintable() else SIGNS.get(character, "")
