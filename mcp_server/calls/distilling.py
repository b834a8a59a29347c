"""What of a run that succeeded is worth remembering? Its answer in short, the lines of it that say what they are, the
decisions its tools noted, and the files it changed.

What a run decided halfway and dropped again is not in its answer, so what is kept is what lasted.
"""

import re
from collections.abc import Iterator, Sequence

from mcp_server.model.memory import LONGEST, Tier

MARKED = re.compile(
    r"^[ \t>*_+#-]{0,20}(decision|fact)[*_]{0,3}[ \t]{0,3}:[*_]{0,3}[ \t]*(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE
)
MOST_LINES = 20
"""Of each kind, in one answer."""
MOST_FILES = 10


def distilled(answer: str, notes: Sequence[tuple[str, str]] = ()) -> list[tuple[Tier, str]]:
    """Facts and decisions in the order of the answer, and the rest of it as the outcome. `notes`: what was kept of the
    run while it went on, kind and text."""
    marked = [(Tier(kind.lower()), short(text)) for kind, text in MARKED.findall(answer)]
    marked += [(Tier.DECISION, short(text)) for kind, text in notes if kind == Tier.DECISION]
    changed = _changed(list(dict.fromkeys(text for kind, text in notes if kind == "file")))
    outcome = short(MARKED.sub("", answer), LONGEST - len(changed)) or short(answer, LONGEST - len(changed))
    return [*dict.fromkeys(_some(marked)), *([(Tier.OUTCOME, outcome + changed)] if outcome else [])]


def _changed(files: Sequence[str]) -> str:
    if not files:
        return ""
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    named = ", ".join(f"`{short(path, 60)}`" for path in files[:MOST_FILES])
    return f" Changed {named}{more}."


def _some(marked: list[tuple[Tier, str]]) -> Iterator[tuple[Tier, str]]:
    for tier in (Tier.FACT, Tier.DECISION):
        yield from [one for one in marked if one[0] is tier and one[1]][:MOST_LINES]


def short(text: str, most: int = LONGEST) -> str:
    """On one line, and not longer than an entry may be."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
