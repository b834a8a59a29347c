"""What do a holder and its guests say to each other, besides what the protocol knows?

A guest speaks to the holder as to the server itself. These are only for the two of them, and no server sees them.
"""

from mcp_server.upstreams.messages import Message

PING, PONG = "menugate/ping", "menugate/pong"
SENDING = "menugate/sending"
"""The holder passes a call on from this moment. Before it, nothing ran."""
CLOSED = "menugate/closed"
"""The instance has ended, and why."""
ASKS = "menugate/asks"
"""The server asks questions that do not say whose they are. After this holder, sessions take turns at once."""
SESSION = "menugate/session"
"""In the `_meta` of a call: the guest's session that makes it."""
ASKER = "menugate/asker"
"""In the `_meta` of a question: the guest's request that it belongs to."""


def build_notice(method: str, **params: object) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}
