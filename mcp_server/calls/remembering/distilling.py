"""What of a final answer is worth remembering? The answer in short, and the lines that say what they are.

Only an answer that ended a run in success is asked. What a run decided halfway and dropped again is not in it, so what
is kept is what lasted.
"""

import re
from collections.abc import Iterator

from mcp_server.model.ports.memory import LONGEST, Tier

MARKED = re.compile(
    r"^[ \t>*_+#-]{0,20}(decision|fact)[*_]{0,3}[ \t]{0,3}:[*_]{0,3}[ \t]*(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE
)
MOST_LINES = 20
"""Of each kind, in one answer."""


def distilled(answer: str) -> list[tuple[Tier, str]]:
    """Facts and decisions in the order of the answer, and the rest of it as the outcome."""
    marked = [(Tier(kind.lower()), short(text)) for kind, text in MARKED.findall(answer)]
    outcome = short(MARKED.sub("", answer)) or short(answer)
    return [*dict.fromkeys(_some(marked)), *([(Tier.OUTCOME, outcome)] if outcome else [])]


def _some(marked: list[tuple[Tier, str]]) -> Iterator[tuple[Tier, str]]:
    for tier in (Tier.FACT, Tier.DECISION):
        yield from [one for one in marked if one[0] is tier and one[1]][:MOST_LINES]


def short(text: str) -> str:
    """On one line, and not longer than an entry may be."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"
