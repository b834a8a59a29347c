"""Where in this project is this spoken of?"""

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.index import IndexRequest
from mcp_server.model.results import Done, Ending
from tools.project.definitions import ProjectSearchArguments
from tools.project.freshness import fresh, said
from tools.project.paging import closing, go_on


async def search(ctx: Context, args: ProjectSearchArguments) -> Ending:
    now = await fresh(ctx)
    wanted = IndexRequest(
        args["query"],
        args.get("path", ""),
        args.get("glob", ""),
        limit=args.get("limit", 20),
        offset=args.get("offset", 0),
        hides=ctx.hides,
    )
    found = await to_thread.run_sync(ctx.index.search, wanted)
    meta = {"total": found.total, "files": found.files, "complete": found.complete and now.complete}
    if not found.total:
        hint = "Every word has to be in the file: try fewer, or the beginning of one with `*`."
        return Done(f"No file holds all of `{args['query']}`. {hint}" + closing(said(now, ctx)), meta=meta)
    lines = [f"{hit.path}:{hit.line}: {hit.text}" for hit in found.shown]
    least = "" if found.complete else "At least "
    counted = (
        f"{least}{found.total:,} line{'s' * (found.total != 1)} in {found.files:,} file{'s' * (found.files != 1)}."
    )
    rest = go_on("index_search", dict(args), len(lines), found.total, found.complete)
    return Done("\n".join(lines) + closing(counted, rest, said(now, ctx)), meta=meta)
