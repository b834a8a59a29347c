"""Where the searches of these tests happen."""

from pathlib import Path

from mcp_server.guards.jail import Jail
from mcp_server.guards.search.ripgrep_run import find_ripgrep
from mcp_server.guards.search.search import FileSearch

PRIVATE = ".menugate"


def finder(root: Path, engine: str) -> FileSearch:
    private = (root / PRIVATE,)
    return FileSearch(Jail(root, private), private, find_ripgrep("", root) if engine == "ripgrep" else None)
