"""What stays of a run when it is over? The memory of the project, which tools can look at and only success writes."""

from mcp_server.calls.remembering.memory import ProjectMemory

__all__ = ["ProjectMemory"]
