"""Which processes serve here, what do they judge by, and which process started which?"""

from mcp_server.state.lives.lineage import ancestors, born, gone, marked, own
from mcp_server.state.lives.locks import Lock, unseen
from mcp_server.state.lives.servers import STOP, Server, obeyed, publish, servers, stop_unwritten, unreadable, withdraw
from mcp_server.state.lives.working import Client, Work, at_work, put_down, take_up

__all__ = [
    "STOP",
    "Client",
    "Lock",
    "Server",
    "Work",
    "ancestors",
    "at_work",
    "born",
    "gone",
    "marked",
    "obeyed",
    "own",
    "publish",
    "put_down",
    "servers",
    "stop_unwritten",
    "take_up",
    "unreadable",
    "unseen",
    "withdraw",
]
