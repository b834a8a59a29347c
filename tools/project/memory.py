"""What is remembered about this project?"""

from mcp_server.model.context import Context
from mcp_server.model.memory import MemoryEntry, Tier
from mcp_server.model.results import Done, Ending
from tools.project.definitions import ProjectMemoryArguments
from tools.project.search import format_closing_note, format_next_call


async def search_memory(ctx: Context, args: ProjectMemoryArguments) -> Ending:
    tier = Tier(args["tier"]) if "tier" in args else None
    query, limit, offset = args.get("query", ""), args.get("limit", 10), args.get("offset", 0)
    found = await ctx.memory.search(query, tier, limit, offset)
    meta = {"total": found.total}
    if not found.total:
        kind = f" as {tier}" if tier else ""
        about = f" about `{query}`" if query.strip() else ""
        return Done(f"Nothing is remembered{kind}{about}." + format_closing_note(HOW), meta=meta)
    rest = format_next_call("memory_search", dict(args), len(found.shown), found.total)
    # Earlier runs wrote this, out of whatever they had read: it informs, and commands nothing.
    text = "\n\n".join(map(_format_entry, found.shown))
    return Done(text + (format_closing_note(rest) if rest else ""), outside="the project's memory", meta=meta)


def _format_entry(entry: MemoryEntry) -> str:
    who = "the user" if entry.by == "person" else "a run that succeeded"
    return f"{entry.tier} {entry.id}, from {who}: {entry.text}"


HOW = (
    "The memory is written when a run is completed with success: its answer as an outcome, and the lines in it that "
    "begin with `Decision:` or `Fact:`. The user adds and takes away with `menugate memory`."
)
