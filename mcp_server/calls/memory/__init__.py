"""What is kept of a run while it goes on, so that its beginning can be forgotten?"""

from mcp_server.calls.memory.folding import LATEST, Memory, address

__all__ = ["LATEST", "Memory", "address"]
