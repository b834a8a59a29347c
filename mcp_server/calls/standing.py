"""What does a call stand on besides its arguments? Asked of the tool when a yes is needed, and before it is used."""

from collections.abc import Callable

import anyio

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Arguments, Tool
from mcp_server.policy.arguments import normalised


async def look_up(
    tool: Tool, context: Context, given: Arguments, failed: Callable[[BaseException], None]
) -> Arguments | Problem:
    """The facts, or why the call does not go on: nobody says yes to what could not be looked at."""
    assert tool.stands_on is not None, "asked only of a tool that stands on something"
    try:
        with anyio.move_on_after(tool.timeout):
            return await tool.stands_on(context, normalised(tool.arguments, given))
        message = f"What `{tool.name}` would act on could not be looked at in time. Nothing ran."
        return Problem(Code.TIMEOUT, message, "Ask for less.")
    except Refusal as refused:
        return refused.problem
    except Exception as fault:
        # A pack is somebody else's code.
        failed(fault)
        message = f"What `{tool.name}` would act on could not be looked at; menugate's log says why. Nothing ran."
        return Problem(Code.INTERNAL, message, "Try another way.")
