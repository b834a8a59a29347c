"""What is where in the workspace? An index of words and symbols, kept beside the state and made anew at any time."""

from mcp_server.guards.index.index import WorkspaceIndex

__all__ = ["WorkspaceIndex"]
