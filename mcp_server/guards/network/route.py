"""Which way do a tool's requests take? Directly, or through the operator's proxy; and who vouches for the hosts."""

from dataclasses import dataclass

from mcp_server.model.web_address import WebAddress


@dataclass(frozen=True, slots=True)
class WebRoute:
    proxy: WebAddress | None = None
    authorities: str = ""
    """The path of a file with more trusted certificates; empty for those of this machine alone."""
