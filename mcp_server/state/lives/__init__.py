"""Which processes serve here, what do they judge by, and which process started which?"""

from mcp_server.state.lives.lineage import ancestors, born, marked, own
from mcp_server.state.lives.locks import Lock, unseen
from mcp_server.state.lives.servers import Server, publish, servers, withdraw

__all__ = ["Lock", "Server", "ancestors", "born", "marked", "own", "publish", "servers", "unseen", "withdraw"]
