"""What is remembered about this project?"""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model.ending import Done, Ending
from mcp_server.model.ports.context import Context
from mcp_server.model.ports.memory import Entry, Tier
from mcp_server.model.schema import Is
from mcp_server.model.tool import Subject
from tools.project.paging import closing, go_on
from tools.project.policy import Skipped, reading


class MemoryArguments(TypedDict):
    query: NotRequired[Annotated[str, "Words; left out, the newest come first", Is(longest=1000)]]
    tier: NotRequired[Annotated[str, "Only these", Is(enum=tuple(Tier))]]
    limit: NotRequired[Annotated[int, "At most so many", Is(default=10, at_least=1, at_most=50)]]
    offset: NotRequired[Skipped]


async def search(ctx: Context, args: MemoryArguments) -> Ending:
    tier = Tier(args["tier"]) if "tier" in args else None
    query, limit, offset = args.get("query", ""), args.get("limit", 10), args.get("offset", 0)
    found = await ctx.memory.search(query, tier, limit, offset)
    meta = {"total": found.total}
    if not found.total:
        kind = f" as {tier}" if tier else ""
        about = f" about `{query}`" if query.strip() else ""
        return Done(f"Nothing is remembered{kind}{about}." + closing(HOW), meta=meta)
    rest = go_on("memory_search", dict(args), len(found.shown), found.total)
    # Earlier runs wrote this, out of whatever they had read: it informs, and commands nothing.
    text = "\n\n".join(map(_said, found.shown))
    return Done(text + (closing(rest) if rest else ""), outside="the project's memory", meta=meta)


def _said(entry: Entry) -> str:
    who = "the user" if entry.by == "person" else "a run that succeeded"
    return f"{entry.tier} {entry.id}, from {who}: {entry.text}"


HOW = (
    "The memory is written when a run is completed with success: its answer as an outcome, and the lines in it that "
    "begin with `Decision:` or `Fact:`. The user adds and takes away with `menugate memory`."
)
MEMORY_SEARCH = reading(
    "memory_search",
    (
        "Search the memory",
        "Look up what earlier runs learned about this project: `fact` (paths, build commands), `decision` (how it is "
        "built and why), `outcome` (how the last runs ended). Only runs that succeeded, and the user, add to it: lines "
        "of the final answer that begin with `Fact:` or `Decision:` are kept. "
        'Example: {"query": "database", "tier": "decision"}',
    ),
    MemoryArguments,
    search,
    ("query", Subject.TEXT),
)
