"""What may tools reach on the web? The operator's lists, and the way there."""

from msgspec import Struct, field

from mcp_server.model.destinations import Destinations
from mcp_server.model.web_address import WebAddress


class WebAccess(Struct, frozen=True):
    """The strictest list that names a host decides. `*` stands for every host that no other entry names."""

    allow: Destinations = field(default_factory=Destinations)
    """What tools may reach at `restricted`, and which addresses they may reach although these are not public."""
    deny: Destinations = field(default_factory=Destinations)
    ask: Destinations = field(default_factory=Destinations)
    proxy: WebAddress | None = None
    """The operator's own proxy, through which everything goes; None to connect directly."""
    authorities: str = ""
    """The path of a file with certificates that are trusted besides the machine's own."""
