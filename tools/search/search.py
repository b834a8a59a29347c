"""Where is it? `grep` looks into files, `glob` looks at their names."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import LEFT_OUT_BY_RULE, Files, Search, SearchResult, is_secret
from mcp_server.model.results import Done, Ending
from tools.search.definitions import ENTRIES, LEFT_OUT, WANT, GlobArguments

Hides: TypeAlias = Callable[[str], bool] | None
NAMES = 100
SECONDS = 30.0


async def grep(ctx: Context, args: Mapping[str, Any]) -> Ending:
    return await to_thread.run_sync(_grep, ctx.files, ctx.hides, args)


def _grep(files: Files, hides: Hides, args: Mapping[str, Any]) -> Ending:
    around = args.get("context", args.get("-C"))
    search = Search(
        pattern=args["pattern"],
        path=args.get("path", ""),
        globs=(args["glob"],) if args.get("glob", "").strip(" ;") else (),
        type=args.get("type") or None,
        ignore_case=args.get("-i", False),
        multiline=args.get("multiline", False),
        before=args.get("-B", 0) if around is None else around,
        after=args.get("-A", 0) if around is None else around,
        only_matching=args.get("-o", False),
        want=WANT[args.get("output_mode", "files_with_matches")],
        limit=args.get("head_limit", ENTRIES),
        offset=args.get("offset", 0),
        timeout=SECONDS,
        line_numbers=args.get("-n", True),
        hides=hides,
    )
    found = files.grep(search)
    if not found.total:
        return Done(
            _describe_nothing_found(f"Nothing matches `{search.pattern}`", search, found), meta=_build_meta(found)
        )
    counted = _format_count(search, found) + (
        "" if is_secret(search.path) else ", files that usually hold secrets left out"
    )
    note = _format_page_note("grep", args, search, found, counted)
    return Done("\n".join([*found.lines, "", note]), meta=_build_meta(found))


def _format_count(search: Search, found: SearchResult) -> str:
    files = f"{found.files:,} file{'s' if found.files != 1 else ''}"
    if found.matches is None:
        return files
    what = "match" if search.multiline or search.only_matching else "matching line"
    return f"{found.matches:,} {what}{('es' if what == 'match' else 's') if found.matches != 1 else ''} in {files}"


def _describe_nothing_found(said: str, search: Search, found: SearchResult) -> str:
    where = f" in `{search.path}`" if search.path else ""
    only = [*(f"`{glob}`" for glob in search.globs), *([f"type `{search.type}`"] if search.type else [])]
    if found.timed_out:
        return f"{said}{where} so far: the search was stopped after {search.timeout:g} s. Narrow it and search again."
    among = f" among files of {' and '.join(only)}" if only else ""
    wider = " Try it without `path`." if search.path else ""
    part = "" if found.complete else " Some files were too large or could not be read to their end."
    left_out = f"[Not searched: {LEFT_OUT}; name one as `path` to search it.]{_format_rule_note(search)}"
    return f"{said}{where}{among}.{wider}{part}\n{left_out}"


def _format_page_note(tool: str, args: Mapping[str, Any], search: Search, found: SearchResult, counted: str) -> str:
    """Which part this is of how much, what was not looked at, and the call that goes on."""
    total = f"{'' if found.complete else 'at least '}{found.total:,}"
    end = min(search.offset + search.limit, found.total) if search.limit else found.total
    notes = [counted if found.complete else f"At least {counted}"]
    if search.offset >= found.total:
        notes = [f"There is nothing from entry {search.offset + 1:,} on: {total} were found ({counted})"]
    elif search.offset or end < found.total:
        notes.append(f"entries {search.offset + 1:,}-{end:,} of {total} are shown")
    text = f"[{'; '.join(notes)}."
    if found.timed_out:
        text += f" The search was stopped after {search.timeout:g} s: narrow it to see the rest."
    if end < found.total:
        call = json.dumps({**args, "offset": end}, ensure_ascii=False)
        text += f" Go on with {tool} {call}"
    return text + "]" + _format_rule_note(search)


def _format_rule_note(search: Search) -> str:
    """Said whenever there is such a rule: what it keeps out of this answer would say what lies there."""
    return f"\n{LEFT_OUT_BY_RULE}" if search.hides else ""


def _build_meta(found: SearchResult) -> dict[str, Any]:
    return {"total": found.total, "files": found.files, "complete": found.complete, "engine": found.engine}


async def glob(ctx: Context, args: GlobArguments) -> Ending:
    return await to_thread.run_sync(_glob, ctx.files, ctx.hides, args)


def _glob(files: Files, hides: Hides, args: GlobArguments) -> Ending:
    path, offset = args.get("path", ""), args.get("offset", 0)
    search = Search(args["pattern"], path, limit=NAMES, offset=offset, timeout=SECONDS, hides=hides)
    found = files.glob(search)
    if not found.total:
        return Done(
            _describe_nothing_found(f"No file is named `{search.pattern}`", search, found), meta=_build_meta(found)
        )
    counted = f"{found.total:,} file{'s' if found.total != 1 else ''}, newest first"
    note = _format_page_note("glob", args, search, found, counted)
    return Done("\n".join([*found.lines, "", note]), meta=_build_meta(found))
