"""What does menugate remember about this project?"""

from mcp_server.model.context import Context
from mcp_server.model.memory import MemoryEntry, Tier
from mcp_server.model.results import Done, Ending
from tools.project.definitions import ProjectMemoryArguments
from tools.project.search import format_closing_note, format_next_call


async def search_memory(ctx: Context, args: ProjectMemoryArguments) -> Ending:
    tier = Tier(args["tier"]) if "tier" in args else None
    query, limit, offset = args.get("query", ""), args.get("limit", 10), args.get("offset", 0)
    matches = await ctx.memory.search(query, tier, limit, offset)
    meta = {"total": matches.total}
    if not matches.total:
        kind = f" as {tier}" if tier else ""
        topic = f" about `{query}`" if query.strip() else ""
        return Done(f"Nothing is remembered{kind}{topic}." + format_closing_note(HOW_IT_IS_WRITTEN), meta=meta)
    note = format_next_call("memory_search", dict(args), len(matches.shown), matches.total)
    text = "\n\n".join(map(_format_entry, matches.shown))
    # Marked as untrusted: earlier runs wrote it, and may have copied what they read.
    return Done(text + (format_closing_note(note) if note else ""), outside="the project's memory", meta=meta)


def _format_entry(entry: MemoryEntry) -> str:
    author = "the user" if entry.by == "person" else "a run that succeeded"
    return f"{entry.tier} {entry.id}, from {author}: {entry.text}"


HOW_IT_IS_WRITTEN = (
    "A run that completes with success writes to the memory: its answer as an outcome, and the lines in it that begin "
    "with `Decision:` or `Fact:`. The user adds and removes entries with `menugate memory`."
)
