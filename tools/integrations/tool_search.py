"""Which tools does a model need? Found by words, by mode, or by name."""

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Ending, Problem
from tools.integrations.definitions import RequestToolsArguments


async def request_tools(ctx: Context, args: RequestToolsArguments) -> Ending:
    query, category, names = args.get("query", ""), args.get("category", ""), args.get("tool_names", [])
    if args.get("list_categories"):
        return ctx.navigator.show_modes()
    if names:
        return await ctx.navigator.add_tools(names) if args.get("add") else ctx.navigator.describe_tools(names)
    if args.get("add"):
        message = "`add` needs the names of the tools in `tool_names`."
        return Problem(Code.INVALID_ARGUMENTS, message, "Find them with `query` first.")
    if not (query.strip() or category.strip()):
        message = "this names nothing to find."
        return Problem(Code.INVALID_ARGUMENTS, message, "Say in `query` what you want to do.")
    return await ctx.navigator.find_tools(query, category)
