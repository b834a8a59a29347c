"""What does this project define, where does it mention a word, and what is remembered about it?"""

import json
from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.index import Freshness, IndexRequest, Symbol
from mcp_server.model.memory import MemoryEntry, Tier
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import format_count
from tools.project.definitions import ProjectMemoryArguments, ProjectSearchArguments, ProjectSymbolArguments

REFRESH_SECONDS = 0.25
"""After each slice the caller can cancel, and learns how far the refresh is."""
MAX_REFRESHES = 40


async def _refresh_index(ctx: Context) -> Freshness:
    """Bring the index up to date, as far as time allows."""
    mark = ctx.index.get_refresh_mark()
    freshness = await to_thread.run_sync(ctx.index.refresh, mark, REFRESH_SECONDS)
    for _ in range(MAX_REFRESHES - 1):
        if freshness.complete:
            break
        await ctx.progress(freshness.looked, None, f"reading what changed: {freshness.looked:,} files checked")
        freshness = await to_thread.run_sync(ctx.index.refresh, mark, REFRESH_SECONDS)
    return freshness


def describe_freshness(freshness: Freshness, ctx: Context) -> str:
    files = format_count(freshness.files, "file")
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(freshness.left_out.items()))
    not_indexed = f"; not in it: {reasons}" if reasons else ""
    rule_note = "Files that a rule hides from this tool are left out. " if ctx.hides else ""
    if freshness.complete:
        return f"{rule_note}Index of {files}, as they are now{not_indexed}."
    hint = "Call again to continue, or use `grep` meanwhile."
    return f"{rule_note}The index is still being built: {files} so far{not_indexed}. {hint}"


def format_next_call(tool: str, args: Mapping[str, Any], shown: int, total: int, complete: bool = True) -> str:
    """Say which entries these are of how many, with the call for the next; empty if these are all."""
    offset = args.get("offset", 0)
    end = offset + shown
    if total and offset >= total:
        return f"There are no entries from {offset + 1:,} on: only {total:,} were found."
    if offset == 0 and end >= total:
        return (
            ""
            if complete
            else f"There may be more than these {total:,}: the search ran out of time or space, so narrow it."
        )
    entries = f"Entries {offset + 1:,}-{end:,} of {'' if complete else 'at least '}{total:,}."
    if end >= total:
        return entries
    return f"{entries} Continue with {tool} {json.dumps({**args, 'offset': end}, ensure_ascii=False)}"


def format_closing_note(*sentences: str) -> str:
    return f"\n[{' '.join(sentence for sentence in sentences if sentence)}]"


async def search_symbols(ctx: Context, args: ProjectSymbolArguments) -> Ending:
    if not (args.get("query", "").strip() or args.get("path", "").strip(" .") or args.get("kind") or args.get("glob")):
        message = "this would list every symbol of the project."
        return Problem(Code.INVALID_ARGUMENTS, message, "Pass a `query`, a `path` or a `kind`.")
    freshness = await _refresh_index(ctx)
    request = IndexRequest(
        args.get("query", ""),
        args.get("path", ""),
        args.get("glob", ""),
        args.get("kind", ""),
        args.get("limit", 50),
        args.get("offset", 0),
        hides=ctx.hides,
    )
    matches = await to_thread.run_sync(ctx.index.find_symbols, request)
    meta = {"total": matches.total, "complete": matches.complete and freshness.complete}
    source = describe_freshness(freshness, ctx)
    if not matches.total:
        result = f"Nothing is defined as `{request.query}`" if request.query else "No definitions were found"
        text = f"{result}. To find words in the text, use `index_search`."
        return Done(text + format_closing_note(source), meta=meta)
    rest = format_next_call("index_symbols", dict(args), len(matches.shown), matches.total, matches.complete)
    return Done("\n".join(map(format_symbol, matches.shown)) + format_closing_note(rest, source), meta=meta)


def format_symbol(symbol: Symbol) -> str:
    lines = f"{symbol.line}-{symbol.last}" if symbol.last > symbol.line else f"{symbol.line}"
    return f"{symbol.path}:{lines}: {symbol.kind} {symbol.full_name}: {symbol.text}"


async def search_index(ctx: Context, args: ProjectSearchArguments) -> Ending:
    freshness = await _refresh_index(ctx)
    request = IndexRequest(
        args["query"],
        args.get("path", ""),
        args.get("glob", ""),
        limit=args.get("limit", 20),
        offset=args.get("offset", 0),
        hides=ctx.hides,
    )
    matches = await to_thread.run_sync(ctx.index.search, request)
    meta = {"total": matches.total, "files": matches.files, "complete": matches.complete and freshness.complete}
    source = describe_freshness(freshness, ctx)
    if not matches.total:
        hint = "A file must contain every word: try fewer words, or the beginning of one with `*`."
        return Done(f"No file contains all of `{args['query']}`. {hint}" + format_closing_note(source), meta=meta)
    lines = [f"{match.path}:{match.line}: {match.text}" for match in matches.shown]
    count = f"{format_count(matches.total, 'line')} in {format_count(matches.files, 'file')}."
    rest = format_next_call("index_search", dict(args), len(lines), matches.total, matches.complete)
    note = format_closing_note(count if matches.complete else f"At least {count}", rest, source)
    return Done("\n".join(lines) + note, meta=meta)


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
