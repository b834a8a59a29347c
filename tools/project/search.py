"""What is defined in this project, and where is it used or mentioned?"""

import json
from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.index import Freshness, IndexRequest, Symbol
from mcp_server.model.results import Code, Done, Ending, Problem
from tools.project.definitions import ProjectSearchArguments, ProjectSymbolArguments

# Is the index what the disk is? Brought up to date before each answer, as far as the time goes, and said in words.

SLICE = 0.25
"""Seconds between two looks whether the caller still waits."""
SLICES = 40


async def refresh_index(ctx: Context) -> Freshness:
    mark, turn = ctx.index.get_refresh_mark(), 0
    while True:
        now, turn = await to_thread.run_sync(ctx.index.refresh, mark, SLICE), turn + 1
        if now.complete or turn >= SLICES:
            return now
        await ctx.progress(now.looked, None, f"reading what changed: {now.looked:,} files looked at")


def describe_freshness(now: Freshness, ctx: Context) -> str:
    """What stands behind the answer, in one sentence."""
    files = f"{now.files:,} file{'s' if now.files != 1 else ''}"
    out = ", ".join(f"{count:,} {why}" for why, count in sorted(now.left_out.items()))
    kept_out = "Left out is what a rule keeps from this tool. " if ctx.hides else ""
    left = f"; not in it: {out}" if out else ""
    if now.complete:
        return f"{kept_out}Index of {files}, as they are now{left}."
    meanwhile = "Call again to go on with it, or use `grep` meanwhile."
    return f"{kept_out}The index is still being made: {files} so far{left}. {meanwhile}"


# Which part of what was found is this, and which call shows the next?


def format_next_call(tool: str, args: Mapping[str, Any], shown: int, total: int, complete: bool = True) -> str:
    """Which entries are shown of how many, and the call that goes on; nothing where that was all."""
    offset = args.get("offset", 0)
    end, least = offset + shown, "" if complete else "at least "
    if total and offset >= total:
        return f"There is nothing from entry {offset + 1:,} on: {total:,} were found."
    if offset == 0 and end >= total:
        return "" if complete else f"There may be more than these {total:,}: time or room ran out, so narrow it."
    told = f"Entries {offset + 1:,}-{end:,} of {least}{total:,}."
    if end >= total:
        return told
    return f"{told} Go on with {tool} {json.dumps({**args, 'offset': end}, ensure_ascii=False)}"


def format_closing_note(*sentences: str) -> str:
    return f"\n[{' '.join(one for one in sentences if one)}]"


# What is defined in this project, and where?


async def search_symbols(ctx: Context, args: ProjectSymbolArguments) -> Ending:
    if not (args.get("query", "").strip() or args.get("path", "").strip(" .") or args.get("kind") or args.get("glob")):
        return Problem(
            Code.INVALID_ARGUMENTS, "that asks for every symbol there is.", "Give a `query`, a `path` or a `kind`."
        )
    now = await refresh_index(ctx)
    wanted = IndexRequest(
        args.get("query", ""),
        args.get("path", ""),
        args.get("glob", ""),
        args.get("kind", ""),
        args.get("limit", 50),
        args.get("offset", 0),
        hides=ctx.hides,
    )
    found = await to_thread.run_sync(ctx.index.find_symbols, wanted)
    meta = {"total": found.total, "complete": found.complete and now.complete}
    if not found.total:
        what = f"Nothing is defined under `{wanted.query}`" if wanted.query else "No definitions were found"
        return Done(
            f"{what}. Words in the text are found by `index_search`."
            + format_closing_note(describe_freshness(now, ctx)),
            meta=meta,
        )
    rest = format_next_call("index_symbols", dict(args), len(found.shown), found.total, found.complete)
    return Done(
        "\n".join(map(format_symbol, found.shown)) + format_closing_note(rest, describe_freshness(now, ctx)), meta=meta
    )


def format_symbol(symbol: Symbol) -> str:
    lines = f"{symbol.line}-{symbol.last}" if symbol.last > symbol.line else f"{symbol.line}"
    return f"{symbol.path}:{lines}: {symbol.kind} {symbol.full_name}: {symbol.text}"


# Where in this project is this spoken of?


async def search_index(ctx: Context, args: ProjectSearchArguments) -> Ending:
    now = await refresh_index(ctx)
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
        return Done(
            f"No file holds all of `{args['query']}`. {hint}" + format_closing_note(describe_freshness(now, ctx)),
            meta=meta,
        )
    lines = [f"{hit.path}:{hit.line}: {hit.text}" for hit in found.shown]
    least = "" if found.complete else "At least "
    counted = (
        f"{least}{found.total:,} line{'s' * (found.total != 1)} in {found.files:,} file{'s' * (found.files != 1)}."
    )
    rest = format_next_call("index_search", dict(args), len(lines), found.total, found.complete)
    return Done("\n".join(lines) + format_closing_note(counted, rest, describe_freshness(now, ctx)), meta=meta)
