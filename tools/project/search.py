"""What is defined in this project, and where?"""

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.index import IndexRequest, Symbol
from mcp_server.model.results import Code, Done, Ending, Problem
from tools.project.definitions import ProjectSymbolArguments
from tools.project.freshness import fresh, said
from tools.project.paging import closing, go_on


async def symbols(ctx: Context, args: ProjectSymbolArguments) -> Ending:
    if not (args.get("query", "").strip() or args.get("path", "").strip(" .") or args.get("kind") or args.get("glob")):
        return Problem(
            Code.INVALID_ARGUMENTS, "that asks for every symbol there is.", "Give a `query`, a `path` or a `kind`."
        )
    now = await fresh(ctx)
    wanted = IndexRequest(
        args.get("query", ""),
        args.get("path", ""),
        args.get("glob", ""),
        args.get("kind", ""),
        args.get("limit", 50),
        args.get("offset", 0),
        hides=ctx.hides,
    )
    found = await to_thread.run_sync(ctx.index.symbols, wanted)
    meta = {"total": found.total, "complete": found.complete and now.complete}
    if not found.total:
        what = f"Nothing is defined under `{wanted.query}`" if wanted.query else "No definitions were found"
        return Done(f"{what}. Words in the text are found by `index_search`." + closing(said(now, ctx)), meta=meta)
    rest = go_on("index_symbols", dict(args), len(found.shown), found.total, found.complete)
    return Done("\n".join(map(line_of, found.shown)) + closing(rest, said(now, ctx)), meta=meta)


def line_of(symbol: Symbol) -> str:
    lines = f"{symbol.line}-{symbol.last}" if symbol.last > symbol.line else f"{symbol.line}"
    return f"{symbol.path}:{lines}: {symbol.kind} {symbol.full}: {symbol.text}"
