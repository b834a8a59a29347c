"""How is the person connected, as far as a call shows? On record with every call; what may run never depends on it."""

from mcp_server.model.posture import Surface

COMMAND = "cli"
"""What `menugate call` comes over."""


def observed(transport: str, *, terminal: bool = False, page: bool = False, asks: bool = False) -> Surface:
    """`terminal`: a command was typed at one. `page`: it came from a browser. `asks`: the client can ask the person."""
    if transport == COMMAND:
        return Surface.TUI if terminal else Surface.HEADLESS
    if page:
        return Surface.WEB
    return Surface.RPC if asks else Surface.HEADLESS
