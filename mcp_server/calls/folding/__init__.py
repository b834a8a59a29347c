"""What is kept of a run while it goes on, so that its beginning can be forgotten?"""

from mcp_server.calls.folding.memory import LATEST, RunMemory, address

__all__ = ["LATEST", "RunMemory", "address"]
