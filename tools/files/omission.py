"""Did somebody write `// ... rest of the code` instead of the code?"""

import re

LEADING = re.compile(r"^(?://+|#+|/\*+|\{/\*|<!--|--|;+|%+|\*+|[(\[<]|\s)+")
TRAILING = re.compile(r"(?:\*/\}?|-->|[)\]>]|\s)+$")
ELLIPSIS = re.compile(r"\.{3,}|…")
COMMENTS = ("//", "#", "/*", "{/*", "<!--", "--", ";", "%", "*")
SENTENCE = re.compile(r"[\w\s,']+")
WORD = re.compile(r"[^\W\d_]+")
MARKERS = "rest remaining remainder existing unchanged omitted previous same unmodified brevity"
# A line of nothing but these words, an ellipsis and comment signs is no sentence anybody means for a reader.
FILLING = """
of the code file files content contents implementation implementations other others as before above below here goes go
methods method functions function imports import class classes logic for is are remains remain stays stay keep kept
lines line and tests test parts part section sections this that everything else all your original config configuration
text body document definitions definition to be in it
"""
LONGEST = 120


def omissions(content: str, known: str) -> list[int]:
    """The lines, from 1, that stand for something left out and are not in the known text already."""
    before = {line.strip() for line in known.split("\n")}
    return [
        number
        for number, line in enumerate(content.split("\n"), 1)
        if len(line) <= LONGEST and _stands_for_something(line.strip()) and line.strip() not in before
    ]


def _stands_for_something(line: str) -> bool:
    core = TRAILING.sub("", LEADING.sub("", line))
    words = [word.casefold() for word in WORD.findall(core)]
    markers = set(MARKERS.split()).intersection(words)
    if not markers or not markers.union(FILLING.split()).issuperset(words):
        return False
    if not line.startswith(COMMENTS) and (len(words) < 2 or not SENTENCE.fullmatch(ELLIPSIS.sub("", core))):
        return False  # `[...rest]` and `...this.existing,` are code
    return bool(ELLIPSIS.search(core)) or (core != line and len(markers) > 1)
