"""Which way do a tool's requests take? Directly, or through the operator's proxy; and who vouches for the hosts."""

from msgspec import Struct

from mcp_server.model.web_address import WebAddress


class WebRoute(Struct, frozen=True):
    proxy: WebAddress | None = None
    authorities: str = ""
    """The path of a file with more trusted certificates; empty for those of this machine alone."""
