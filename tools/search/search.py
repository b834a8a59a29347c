"""Where is it? `grep` searches the content of files, `glob` their names."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import LEFT_OUT_BY_RULE, Files, Search, SearchResult, is_secret
from mcp_server.model.results import Done, Ending
from mcp_server.model.text import format_count
from tools.search.definitions import ENTRIES, LEFT_OUT, WANT, GlobArguments

PathFilter: TypeAlias = Callable[[str], bool] | None
GLOB_PAGE = 100
TIMEOUT_SECONDS = 30.0


async def grep(ctx: Context, args: Mapping[str, Any]) -> Ending:
    return await to_thread.run_sync(_grep, ctx.files, ctx.hides, args)


def _grep(files: Files, hides: PathFilter, args: Mapping[str, Any]) -> Ending:
    context_lines = args.get("context", args.get("-C"))
    search = Search(
        pattern=args["pattern"],
        path=args.get("path", ""),
        globs=(args["glob"],) if args.get("glob", "").strip(" ;") else (),
        type=args.get("type") or None,
        ignore_case=args.get("-i", False),
        multiline=args.get("multiline", False),
        before=args.get("-B", 0) if context_lines is None else context_lines,
        after=args.get("-A", 0) if context_lines is None else context_lines,
        only_matching=args.get("-o", False),
        want=WANT[args.get("output_mode", "files_with_matches")],
        limit=args.get("head_limit", ENTRIES),
        offset=args.get("offset", 0),
        timeout=TIMEOUT_SECONDS,
        line_numbers=args.get("-n", True),
        hides=hides,
    )
    result = files.grep(search)
    if not result.total:
        text = _describe_no_matches(f"Nothing matches `{search.pattern}`", search, result)
        return Done(text, meta=_build_meta(result))
    secrets = "" if is_secret(search.path) else ", files that usually hold secrets left out"
    note = _format_page_note("grep", args, search, result, _format_count(search, result) + secrets)
    return Done("\n".join([*result.lines, "", note]), meta=_build_meta(result))


def _format_count(search: Search, result: SearchResult) -> str:
    files = format_count(result.files, "file")
    if result.matches is None:
        return files
    nouns = ("match", "matches") if search.multiline or search.only_matching else ("matching line", "matching lines")
    return f"{format_count(result.matches, *nouns)} in {files}"


def _describe_no_matches(sentence: str, search: Search, result: SearchResult) -> str:
    where = f" in `{search.path}`" if search.path else ""
    if result.timed_out:
        return f"{sentence}{where} so far: the search was stopped after {search.timeout:g} s. Narrow it and try again."
    filters = [*(f"`{glob}`" for glob in search.globs), *([f"type `{search.type}`"] if search.type else [])]
    among = f" among files of {' and '.join(filters)}" if filters else ""
    hint = " Try it without `path`." if search.path else ""
    incomplete = "" if result.complete else " Some files were too large or could not be read to the end."
    not_searched = f"[Not searched: {LEFT_OUT}; name one as `path` to search it.]{_format_rule_note(search)}"
    return f"{sentence}{where}{among}.{hint}{incomplete}\n{not_searched}"


def _format_page_note(tool: str, args: Mapping[str, Any], search: Search, result: SearchResult, count: str) -> str:
    """Say which entries these are of how many, what was not searched, and how to get the next."""
    total = f"{'' if result.complete else 'at least '}{result.total:,}"
    end = min(search.offset + search.limit, result.total) if search.limit else result.total
    notes = [count if result.complete else f"At least {count}"]
    if search.offset >= result.total:
        notes = [f"There are no entries from {search.offset + 1:,} on: only {total} were found ({count})"]
    elif search.offset or end < result.total:
        notes.append(f"entries {search.offset + 1:,}-{end:,} of {total} are shown")
    text = f"[{'; '.join(notes)}."
    if result.timed_out:
        text += f" The search was stopped after {search.timeout:g} s: narrow it to see the rest."
    if end < result.total:
        text += f" Continue with {tool} {json.dumps({**args, 'offset': end}, ensure_ascii=False)}"
    return text + "]" + _format_rule_note(search)


def _format_rule_note(search: Search) -> str:
    # Added whenever there is such a rule: adding it only if the rule hid something would show that something is there.
    return f"\n{LEFT_OUT_BY_RULE}" if search.hides else ""


def _build_meta(result: SearchResult) -> dict[str, Any]:
    return {"total": result.total, "files": result.files, "complete": result.complete, "engine": result.engine}


async def glob(ctx: Context, args: GlobArguments) -> Ending:
    return await to_thread.run_sync(_glob, ctx.files, ctx.hides, args)


def _glob(files: Files, hides: PathFilter, args: GlobArguments) -> Ending:
    path, offset = args.get("path", ""), args.get("offset", 0)
    search = Search(args["pattern"], path, limit=GLOB_PAGE, offset=offset, timeout=TIMEOUT_SECONDS, hides=hides)
    result = files.glob(search)
    if not result.total:
        text = _describe_no_matches(f"No file is named `{search.pattern}`", search, result)
        return Done(text, meta=_build_meta(result))
    count = f"{format_count(result.total, 'file')}, newest first"
    note = _format_page_note("glob", args, search, result, count)
    return Done("\n".join([*result.lines, "", note]), meta=_build_meta(result))
