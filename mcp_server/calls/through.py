"""What may one tool call on the way to its own answer? What a client could have called, and no way to call further."""

from dataclasses import replace

from mcp_server.calls.request import CallRequest, ParentCall, ResolvedCall
from mcp_server.model.menus import CARRIERS
from mcp_server.model.policy import Policy
from mcp_server.model.results import Code, Problem
from mcp_server.model.tools import Arguments

DEEPEST = 2


def made_within(
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
    return replace(found.asked, tool=tool, arguments=arguments, seat=found.seat, within=within)
