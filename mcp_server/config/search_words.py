"""Which words mean nearly the same to a search for tools? menus/search_words.txt says it, read on the first search."""

from pathlib import Path

from mcp_server.policy.search_words import Related, parse_related

FILE = "search_words.txt"


def load_search_words(menus: Path) -> tuple[Related, ...]:
    """Load the list of the shipped menus folder. Without it, a search still finds words as they are written."""
    try:
        return parse_related((menus / FILE).read_text(encoding="utf-8"))
    except OSError:
        return ()
