"""Which processes serve here, what do they judge by, and which process started which?"""

from mcp_server.state.lives.lineage import ancestors, born, gone, marked, own
from mcp_server.state.lives.locks import Lock, unseen
from mcp_server.state.lives.servers import STOP, Server, obeyed, publish, servers, stop_unwritten, withdraw

__all__ = [
    "STOP",
    "Lock",
    "Server",
    "ancestors",
    "born",
    "gone",
    "marked",
    "obeyed",
    "own",
    "publish",
    "servers",
    "stop_unwritten",
    "unseen",
    "withdraw",
]
