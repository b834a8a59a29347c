"""What was requested, by whom, and what may one call request in turn?"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.model.menus import CARRIERS
from mcp_server.model.policy import PathsBeneath, Policy
from mcp_server.model.posture import Surface
from mcp_server.model.results import Code, Problem
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Arguments, Tool

if TYPE_CHECKING:
    from mcp_server.model.context import Client, Progress


# What was requested, by whom, in which live session, and what does it mean?


class Interruption(Exception):
    """Stops a call without an ending of its own: a question goes out, or the protocol answers instead.

    Each subclass says how it is recorded; the pipeline records it and lets it pass.
    """

    recorded_as = "question"


class ParentCall(Struct, frozen=True):
    """The call on whose behalf a tool makes another one."""

    tool: str
    record: int
    """Its row in the ledger."""
    depth: int = 1
    loose: bool = True
    """The client's call, the outermost one, came without a handle."""


class ClientListing(Protocol):
    """The list of tools that a client sees, as far as advice depends on it. Looked at only when there is advice."""

    @property
    def fixed(self) -> bool:
        """The list never changes, whichever mode is entered: the client reaches other tools through a carrier."""
        ...

    @property
    def carriers(self) -> bool:
        """The carriers are in the list. If they are not, no answer mentions them."""
        ...


class ChangingListing(Struct, frozen=True):
    """A list that follows the mode, with the carriers in it."""

    fixed: bool = False
    carriers: bool = True


class CallRequest(Struct, frozen=True):
    """A call as it came in, before anything was resolved."""

    tool: str
    arguments: Arguments
    live: LiveSession
    principal: str
    client: "Client"
    progress: "Progress"
    transport: str
    moved: Callable[[LiveSession, Session], Awaitable[None]]
    """Announces a changed list to every client that sees it, given the live session and where it was before, and gives
    this client time to fetch the list."""
    surface: Surface = Surface.HEADLESS
    within: ParentCall | None = None
    """None if the call came from a client."""
    turn: Callable[[LiveSession], Session | None] = lambda _seat: None
    """Switches the client's connection to that place of its session. Returns where it was; None if that is the same
    place."""
    listing: ClientListing = ChangingListing()
    offer: bool = False
    """It asks for a resource or prompt of a server, by the name of what that passes through, which is no tool to
    clients."""
    collect_meta: Callable[[], Mapping[str, Any]] = dict[str, Any]
    """Collects what of the request's `_meta` a server behind menugate gets."""


class ResolvedCall(Struct, frozen=True):
    """The tool that was meant, and the live session it is judged in. A carried call is already unpacked."""

    request: CallRequest
    tool: Tool
    arguments: Arguments
    live: LiveSession
    policy: Policy
    """The policy under which `led` was call: that is None if no rule of the policy could care."""
    digest: str
    """Of the arguments, in canonical form."""
    size: int
    """Bytes of that form."""
    carrier: Tool | None = None
    """What carried the call here. It may be forbidden too, by its own name."""
    led: Arguments | None = None
    """The arguments with every path's links followed; None if no link leads elsewhere."""
    handle: str | None = None
    """The menu handle that came with the call."""
    beneath: tuple[PathsBeneath, ...] = ()
    """What rules say about the contents of a folder that the call takes as a whole."""

    @property
    def readings(self) -> tuple[Arguments, ...]:
        """The arguments as written, and, if links change what they mean, as resolved."""
        return (self.arguments,) if self.led is None else (self.arguments, self.led)

    @property
    def loose(self) -> bool:
        """True if nothing ties the call to a place: neither its own handle nor that of the call it is made within."""
        return self.handle is None and (self.request.within is None or self.request.within.loose)


# What may a tool call for its own answer? What a client could call, except meta tools and carriers.

DEEPEST = 2


def build_nested_call(
    call: ResolvedCall, record: int, tool: str, arguments: Arguments, policy: Policy
) -> CallRequest | Problem:
    """Build the request as a client would send it: same caller, same place, with the call that makes it."""
    depth = (call.request.within.depth if call.request.within else 0) + 1
    named = policy.tools.get(tool)
    if tool in CARRIERS or (named is not None and named.meta):
        return Problem(
            Code.NOT_CARRIED,
            f"`{call.tool.name}` cannot call `{tool}`: only the client may call meta-tools and carriers.",
        )
    if depth > DEEPEST:
        return Problem(
            Code.NOT_GRANTED,
            f"`{call.tool.name}` cannot call `{tool}`: calls can be nested at most {DEEPEST} deep.",
        )
    within = ParentCall(call.tool.name, record, depth, call.loose)
    offer = named is not None and not named.is_listed
    return replace(call.request, tool=tool, arguments=arguments, live=call.live, within=within, offer=offer)
