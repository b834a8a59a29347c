"""What did a run come to? Put together from what the state knows of it, and from nothing else."""

from mcp_server.state.memory.gathering import HOW_MANY_RUNS, known_runs, of_run
from mcp_server.state.memory.summary import Note, Summary, summarised

__all__ = ["HOW_MANY_RUNS", "Note", "Summary", "known_runs", "of_run", "summarised"]
