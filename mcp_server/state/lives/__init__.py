"""Which processes serve here, what do they judge by, and which process started which?"""

from mcp_server.state.lives.lineage import ancestors, born, gone, marked
from mcp_server.state.lives.servers import STOP, Server, obeyed, publish, servers, stop_unwritten, withdraw

__all__ = [
    "STOP",
    "Server",
    "ancestors",
    "born",
    "gone",
    "marked",
    "obeyed",
    "publish",
    "servers",
    "stop_unwritten",
    "withdraw",
]
