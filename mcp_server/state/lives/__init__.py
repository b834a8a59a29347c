"""Which processes serve here, what do they judge by, and which process started which?"""

from mcp_server.state.lives.lineage import ancestors, born, marked
from mcp_server.state.lives.servers import Server, publish, servers, withdraw

__all__ = ["Server", "ancestors", "born", "marked", "publish", "servers", "withdraw"]
