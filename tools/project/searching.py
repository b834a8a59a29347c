"""Where in this project is this spoken of?"""

from typing import Annotated, NotRequired, TypedDict

from anyio import to_thread

from mcp_server.model.ending import Done, Ending
from mcp_server.model.ports.context import Context
from mcp_server.model.ports.index import Wanted
from mcp_server.model.schema import Is
from mcp_server.model.tool import Subject
from tools.project.freshness import fresh, said
from tools.project.paging import closing, go_on
from tools.project.policy import AnyPath, Globs, Most, Skipped, reading


class SearchArguments(TypedDict):
    query: Annotated[str, 'Words; `begin*`; `"a phrase"`', Is(shortest=1, longest=1000)]
    path: NotRequired[AnyPath]
    glob: NotRequired[Globs]
    limit: NotRequired[Most]
    offset: NotRequired[Skipped]


async def search(ctx: Context, args: SearchArguments) -> Ending:
    now = await fresh(ctx)
    wanted = Wanted(
        args["query"],
        args.get("path", ""),
        args.get("glob", ""),
        limit=args.get("limit", 20),
        offset=args.get("offset", 0),
    )
    found = await to_thread.run_sync(ctx.index.search, wanted)
    meta = {"total": found.total, "files": found.files, "complete": found.complete and now.complete}
    if not found.total:
        hint = "Every word has to be in the file: try fewer, or the beginning of one with `*`."
        return Done(f"No file holds all of `{args['query']}`. {hint}" + closing(said(now)), meta=meta)
    lines = [f"{hit.path}:{hit.line}: {hit.text}" for hit in found.shown]
    least = "" if found.complete else "At least "
    counted = (
        f"{least}{found.total:,} line{'s' * (found.total != 1)} in {found.files:,} file{'s' * (found.files != 1)}."
    )
    rest = go_on("index_search", dict(args), len(lines), found.total, found.complete)
    return Done("\n".join(lines) + closing(counted, rest, said(now)), meta=meta)


INDEX_SEARCH = reading(
    "index_search",
    (
        "Search the project",
        "Search the index of the whole project for words: shows `path:line: text`, the best first. A file fits when it "
        "holds every word; lines with more of them, definitions and matching paths come first. Case does not matter, "
        "`parse_request` and `parseRequest` are found by `parse request`. The index follows the disk by itself and "
        "leaves out what .gitignore names, binary files, files over 1 MB and files that usually hold secrets. For "
        'regular expressions use grep. Example: {"query": "retry backoff", "glob": "*.py"}',
    ),
    SearchArguments,
    search,
    ("path", Subject.PATH),
)
