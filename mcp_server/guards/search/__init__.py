"""Where in the workspace does this occur? The guard's search, by ripgrep shut in or in plain Python."""

from mcp_server.guards.search.finder import Finder
from mcp_server.guards.search.running import find_ripgrep

__all__ = ["Finder", "find_ripgrep"]
