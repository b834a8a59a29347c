"""What is defined in this project, and where?"""

from typing import Annotated, NotRequired, TypedDict

from anyio import to_thread

from mcp_server.model.ending import Code, Done, Ending, Problem
from mcp_server.model.ports.context import Context
from mcp_server.model.ports.index import KINDS, Symbol, Wanted
from mcp_server.model.schema import Is
from mcp_server.model.tool import Subject
from tools.project.freshness import fresh, said
from tools.project.paging import closing, go_on
from tools.project.policy import MOST, AnyPath, Globs, Skipped, reading


class SymbolArguments(TypedDict):
    query: NotRequired[Annotated[str, "A name or a part of it: `Store`, `Store.open`, `handler`", Is(longest=300)]]
    path: NotRequired[AnyPath]
    glob: NotRequired[Globs]
    kind: NotRequired[Annotated[str, "Only these", Is(enum=KINDS)]]
    limit: NotRequired[Annotated[int, "At most so many", Is(default=50, at_least=1, at_most=MOST)]]
    offset: NotRequired[Skipped]


async def symbols(ctx: Context, args: SymbolArguments) -> Ending:
    if not (args.get("query", "").strip() or args.get("path", "").strip(" .") or args.get("kind") or args.get("glob")):
        return Problem(
            Code.INVALID_ARGUMENTS, "that asks for every symbol there is.", "Give a `query`, a `path` or a `kind`."
        )
    now = await fresh(ctx)
    wanted = Wanted(
        args.get("query", ""),
        args.get("path", ""),
        args.get("glob", ""),
        args.get("kind", ""),
        args.get("limit", 50),
        args.get("offset", 0),
    )
    found = await to_thread.run_sync(ctx.index.symbols, wanted)
    meta = {"total": found.total, "complete": found.complete and now.complete}
    if not found.total:
        what = f"Nothing is defined under `{wanted.query}`" if wanted.query else "No definitions were found"
        return Done(f"{what}. Words in the text are found by `index_search`." + closing(said(now)), meta=meta)
    rest = go_on("index_symbols", dict(args), len(found.shown), found.total, found.complete)
    return Done("\n".join(map(line_of, found.shown)) + closing(rest, said(now)), meta=meta)


def line_of(symbol: Symbol) -> str:
    lines = f"{symbol.line}-{symbol.last}" if symbol.last > symbol.line else f"{symbol.line}"
    return f"{symbol.path}:{lines}: {symbol.kind} {symbol.full}: {symbol.text}"


INDEX_SYMBOLS = reading(
    "index_symbols",
    (
        "Find definitions",
        "Find where classes, functions, methods, types, constants and headings are defined, by name or a part of it: "
        "`path:first-last: kind Full.name: its line`, exact names first. With `path` alone it is the outline of a file "
        "or folder. Knows Python, JavaScript, TypeScript, Go, Rust, Java, Kotlin, C#, C, C++, Swift, Scala, PHP, Ruby, "
        'Lua, shell, SQL and Markdown. Read one with index_read. Example: {"query": "Store.open"}',
    ),
    SymbolArguments,
    symbols,
    ("path", Subject.PATH),
)
