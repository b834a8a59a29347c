"""Which request follows a redirect, if any? The one place that decides what another host may be sent."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.network import Request, Response
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.web_address import BadWebAddress, WebAddress

KEEPING_METHOD, BECOMING_GET = frozenset({307, 308}), frozenset({301, 302, 303})
READING = frozenset({"GET", "HEAD"})
FOR_ANY_HOST = frozenset({"accept", "accept-language", "accept-encoding", "user-agent", "range"})
"""Headers that say nothing about who asks. All others, with cookies and credentials, stay with the host they were meant
for."""


class Hop(Struct, frozen=True):
    """A request with its address read."""

    address: WebAddress
    request: Request


def find_next_hop(path: Sequence[Hop], response: Response) -> Hop | None:
    """Return the request that follows this response to the last one; None if the response is the answer."""
    hop = path[-1]
    location = response.header("location")
    if response.status not in KEEPING_METHOD | BECOMING_GET or not location or not hop.request.redirects:
        return None
    if len(path) > hop.request.redirects:
        raise _build_refusal(f"The server redirected more than {hop.request.redirects} times.")
    try:
        address = hop.address.join(_decode_location(location))
    except BadWebAddress as fault:
        raise _build_refusal(f"The server redirected to an address that cannot be fetched. {fault}") from None
    if hop.address.scheme == "https" and address.scheme == "http":
        raise _build_refusal(f"The server redirected from https to http, at `{address.origin}`.")
    following = Hop(address, _build_request(hop, address, response.status))
    if any((one.address, one.request.method) == (address, following.request.method) for one in path):
        raise _build_refusal("The server redirected in a circle.")
    return following


def _decode_location(location: str) -> str:
    """Headers are read as Latin-1. Letters outside ASCII are not allowed in this one, and usually mean UTF-8."""
    try:
        return location.encode("latin-1").decode()
    except UnicodeDecodeError:
        return location


def _build_request(hop: Hop, address: WebAddress, status: int) -> Request:
    request, same = hop.request, address.origin == hop.address.origin
    if request.method in READING:
        following = replace(request, url=address.url, body=b"")
    elif status in BECOMING_GET:
        following = replace(request, url=address.url, method="GET", body=b"")
    elif same:
        return replace(request, url=address.url)
    else:
        raise _build_refusal(f"The server redirected what you sent to another host, `{address.origin}`.")
    headers = [(name, value) for name, value in request.headers if same or name.lower() in FOR_ANY_HOST]
    return replace(following, headers=[pair for pair in headers if not pair[0].lower().startswith("content-")])


def _build_refusal(message: str) -> Refusal:
    return Refusal(Problem(Code.TOOL_FAILED, message, "If you trust the place, ask for the final URL itself."))
