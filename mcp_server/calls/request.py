"""What was asked for, by whom, and what may one call ask for on its way?"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.model.menus import CARRIERS
from mcp_server.model.policy import PathsBeneath, Policy
from mcp_server.model.posture import Surface
from mcp_server.model.results import Code, Problem
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Arguments, Tool

if TYPE_CHECKING:
    from mcp_server.model.context import Client, Progress


# What was asked for, by whom, in which seat, and what does it mean?

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Interruption(Exception):
    """The call stops here without an ending of its own: a question goes out, or the protocol answers for it.

    Whoever raises it says how it is to be recorded; the pipeline records and lets it through.
    """

    recorded_as = "question"


@dataclass(frozen=True, slots=True)
class ParentCall:
    """The call that makes another one on the way to its own answer."""

    tool: str
    record: int
    """Its row in the ledger."""
    depth: int = 1
    loose: bool = True
    """No handle came with the call that a client made."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call as it came in, before anybody looked what it means."""

    tool: str
    arguments: Arguments
    live: LiveSession
    principal: str
    client: "Client"
    progress: "Progress"
    transport: str
    moved: Callable[[LiveSession, Session], Awaitable[None]]
    """Tell whoever looks at this seat's list, which stood there before, and give this client time to look."""
    surface: Surface = Surface.HEADLESS
    within: ParentCall | None = None
    """None for what came from a client."""
    turn: Callable[[LiveSession], Session | None] = lambda _seat: None
    """Let the client's connection stand at that place of its session; where it stood, None where that is the same."""
    fixed: bool = False
    """The client's list stays as it is, whatever mode is entered: what is behind it is reached through a carrier."""
    carriers: bool = True
    """Are the carriers in the client's list? Where they are not, nobody is told of them."""


@dataclass(frozen=True)
class ResolvedCall:
    """The tool that was meant, and the seat it is judged in: a carrier is no longer in sight."""

    asked: CallRequest
    tool: Tool
    arguments: Arguments
    live: LiveSession
    carrier: Tool | None = None
    """What carried the call here. It may be forbidden too, by its own name."""
    led: Arguments | None = None
    """The arguments with every path as where its links lead; None where they lead nowhere else."""
    handle: str | None = None
    """The menu handle that came with the call."""
    beneath: tuple[PathsBeneath, ...] = ()
    """What rules say of what lies in the tree that the call takes whole."""

    @property
    def readings(self) -> tuple[Arguments, ...]:
        """The arguments as they were written and, where links make that something else, as what they mean."""
        return tuple(one for one in (self.arguments, self.led) if one is not None)

    @property
    def loose(self) -> bool:
        """Nothing binds it to a place: neither a handle of its own nor that of the call it is made within."""
        return self.handle is None and (self.asked.within is None or self.asked.within.loose)

    @cached_property
    def measure(self) -> tuple[str, int]:
        return measure_arguments(self.arguments)


def measure_arguments(arguments: Arguments) -> tuple[str, int]:
    """The digest of the arguments in their one canonical form, and how long that is."""
    canonical = CANONICAL.encode(arguments).encode()
    return hashlib.sha256(canonical).hexdigest(), len(canonical)


# What may one tool call on the way to its own answer? What a client could have called, and no way to call further.

DEEPEST = 2


def build_nested_call(
    found: ResolvedCall, record: int, tool: str, arguments: Arguments, policy: Policy
) -> CallRequest | Problem:
    """The call as the gate takes it: by the same caller, at the same place, naming the call it is made for."""
    depth = (found.asked.within.depth if found.asked.within else 0) + 1
    named = policy.tools.get(tool)
    if tool in CARRIERS or (named is not None and named.meta):
        return Problem(Code.NOT_CARRIED, f"`{found.tool.name}` cannot call `{tool}`: only a client moves and speaks.")
    if depth > DEEPEST:
        return Problem(
            Code.NOT_GRANTED, f"`{found.tool.name}` cannot call `{tool}`: calls within calls end at depth {DEEPEST}."
        )
    within = ParentCall(found.tool.name, record, depth, found.loose)
    return replace(found.asked, tool=tool, arguments=arguments, live=found.live, within=within)
