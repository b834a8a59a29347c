"""Which words are forms of one word? `directories` and `directory` have one stem, and so have `move` and `moving`.

Porter's rules for English, in short tables: each step cuts at most one ending, the longest that fits. A stem need not
be a word; it only has to be the same for the forms of one.
"""

import re
from functools import lru_cache

SHORTEST = 3
"""Shorter words are stems already."""
VOWEL = re.compile(r"[aeiou]|(?<=[^aeiou])y")
SYLLABLE = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)(?:[^aeiouy]|(?<=[aeiou])y)")
"""A vowel and the consonant after it: Porter's measure counts them."""
SHORT_SYLLABLE = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$")
LONG_ENDINGS = {
    "ational": "ate", "ization": "ize", "isation": "ize", "iveness": "ive", "fulness": "ful", "ousness": "ous",
    "tional": "tion", "biliti": "ble", "icate": "ic", "ative": "", "alize": "al", "alise": "al", "iciti": "ic",
    "ation": "ate", "aliti": "al", "iviti": "ive", "ator": "ate", "izer": "ize", "iser": "ize", "ical": "ic",
    "alli": "al", "enci": "ence", "anci": "ance", "ousli": "ous", "entli": "ent", "ness": "", "bli": "ble", "ful": "",
    "eli": "e",
}  # fmt: skip
LAST_ENDINGS = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ise",
    "al", "er", "or", "ic", "ou",
)  # fmt: skip


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Return the stem of a lower-case word."""
    if len(word) <= SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    word = _cut_past_and_present(_cut_plural(word))
    if word.endswith("y") and VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    return _cut_final_e(_cut_last_ending(_cut_long_ending(word)))


def _count_syllables(word: str) -> int:
    return len(SYLLABLE.findall(word))


def _cut_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _cut_past_and_present(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _count_syllables(word[:-3]) else word
    cut = next((word[: -len(ending)] for ending in ("ed", "ing") if word.endswith(ending)), "")
    if not VOWEL.search(cut):
        return word
    if cut.endswith(("at", "bl", "iz")) or (_count_syllables(cut) == 1 and SHORT_SYLLABLE.search(cut)):
        return cut + "e"
    return cut[:-1] if cut[-2:-1] == cut[-1] and cut[-1] not in "lsz" else cut


def _cut_long_ending(word: str) -> str:
    for ending, instead in LONG_ENDINGS.items():
        if word.endswith(ending):
            start = word[: -len(ending)]
            return start + instead if _count_syllables(start) else word
    return word


def _cut_last_ending(word: str) -> str:
    if word.endswith("ion"):
        return word[:-3] if word[-4:-3] in ("s", "t") and _count_syllables(word[:-3]) > 1 else word
    for ending in LAST_ENDINGS:
        if word.endswith(ending):
            start = word[: -len(ending)]
            return start if _count_syllables(start) > 1 else word
    return word


def _cut_final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    start, syllables = word[:-1], _count_syllables(word[:-1])
    return start if syllables > 1 or (syllables == 1 and not SHORT_SYLLABLE.search(start)) else word
