"""What of this text is code? The text again, as long and with the same lines, its comments and strings hidden.

Comments become spaces. A string keeps its first sign and is filled with a mark, so that a line that begins inside one
is known by that. Every pattern takes what it looked at, to the end of the text where nothing closes it: time grows
with the length of the text and not faster.
"""

import re
from functools import lru_cache

INSIDE = "\x01"
NOT_A_LINE_END = re.compile(r"[^\n]")

COMMENTS = {
    "#": r"#[^\n]*+",
    "shell #": r"(?:(?<=\s)|(?<![\s\S]))#[^\n]*+",
    "//": r"//[^\n]*+",
    "--": r"--[^\n]*+",
    "/*": r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?",
    "=begin": r"(?m:^)=begin\b(?:[^\n]|\n(?!=end\b))*+(?:\n=end\b[^\n]*+)?",
    "```": r"(?m:^) {0,3}```(?:[^\n]|\n(?! {0,3}```))*+(?:\n {0,3}```[^\n]*+)?",
    "--[[": r"--\[\[(?:[^\]]|\](?!\]))*+(?:\]\])?",
}
STRINGS = {
    '"""': r'"""(?:[^"\\]|\\(?:.|\Z)|"(?!""))*+(?:""")?',
    "'''": r"'''(?:[^'\\]|\\(?:.|\Z)|'(?!''))*+(?:''')?",
    '"': r'"(?:[^"\\\n]|\\(?:.|\Z))*+"?',
    "'": r"'(?:[^'\\\n]|\\(?:.|\Z))*+'?",
    'long "': r'"(?:[^"\\]|\\(?:.|\Z))*+"?',
    "long '": r"'(?:[^'\\]|\\(?:.|\Z))*+'?",
    "plain '": r"'[^']*+'?",
    "`": r"`(?:[^`\\]|\\(?:.|\Z))*+`?",
    "raw `": r"`[^`]*+`?",
    "sign '": r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,8}+)'",
    "r#": r'r(?P<signs>#{1,8}+)"(?:[^"]|"(?!(?P=signs)))*+(?:"(?P=signs))?',
}


@lru_cache(maxsize=64)
def hidden(comments: tuple[str, ...], strings: tuple[str, ...]) -> re.Pattern[str]:
    noted = "|".join(COMMENTS[one] for one in comments)
    quoted = "|".join(STRINGS[one] for one in strings)
    return re.compile(f"(?s)(?P<comment>{noted or '(?!)'})|(?P<string>{quoted or '(?!)'})")


def masked(text: str, comments: tuple[str, ...], strings: tuple[str, ...]) -> str:
    return hidden(comments, strings).sub(_mask, text.replace(INSIDE, " "))


def _mask(found: re.Match[str]) -> str:
    if found["comment"] is not None:
        return NOT_A_LINE_END.sub(" ", found[0])
    return found[0][0] + NOT_A_LINE_END.sub(INSIDE, found[0][1:])
