"""What was committed, by whom and when? The log, and one commit with what it changed."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import to_one_line, to_plain_text
from tools.git import porcelain
from tools.git.diff import describe_source
from tools.git.patch import PatchRequest, read_patch
from tools.git.paths import locate_paths
from tools.git.program import GitProgram, open_repository
from tools.git.revisions import read_head, resolve_commit

MOST_COUNTED = 10_000
MOST_MESSAGE = 4_000
FIELDS = ("H", "P", "an", "ae", "aI", "cI", "D", "s", "b")
FORMAT = f"--format={'%x00'.join(f'%{field}' for field in FIELDS)}"
WHEN = re.compile(
    r"@?\d{9,11}"
    r"|\d{4}-\d{2}-\d{2}([T ]\d{1,2}:\d{2}(:\d{2})?( ?(Z|[+-]\d{2}:?\d{2}))?)?"
    r"|(now|today|yesterday|noon|midnight)"
    r"|(\d+|a|an|one|two|three|four|five|six|seven|eight|nine|ten|last)[ .]"
    r"(second|minute|hour|day|week|month|year)s?([ .]ago)?"
    r"|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2},? \d{4}",
    re.IGNORECASE,
)
"""Git takes any words for a time, and those it does not understand for now."""


async def show_log(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    start = await resolve_commit(git, args["revision"]) if "revision" in args else await read_head(git)
    if start is None:
        return Done("There is no commit yet.", {"commits": [], "total": 0, "truncated": False, "next": None})
    paths = await to_thread.run_sync(locate_paths, ctx.files, git.repository, args.get("paths", ()))
    chosen = (*_build_time_options(args), start, "--", *paths)
    most, offset = args.get("max_count", 10), args.get("offset", 0)
    listed = await git.read("log", "--no-notes", "-z", FORMAT, f"--max-count={most}", f"--skip={offset}", *chosen)
    found = [_parse_commit(row) for row in porcelain.parse_rows(listed, len(FIELDS))]
    total = int(await git.read("rev-list", "--count", f"--max-count={MOST_COUNTED}", *chosen))
    return _build_log_answer(git, args, found, total)


def _build_log_answer(
    git: GitProgram, args: Mapping[str, Any], found: Sequence[Mapping[str, Any]], total: int
) -> Ending:
    offset = args.get("offset", 0)
    end = offset + len(found)
    onward = dict(args) | {"offset": end} if found and end < total else None
    data = {"commits": found, "total": total, "truncated": onward is not None, "next": onward}
    if not found:
        return Done(f"No commits{f' after the first {total:,}' if offset and total else ' match'}.", data)
    lines = [_format_commit(one) for one in found]
    if onward or offset:
        least = "at least " if total == MOST_COUNTED else ""
        lines.append(f"[Commits {offset + 1:,}-{end:,} of {least}{total:,}.")
        lines[-1] += f" Go on with git_log {json.dumps(onward, ensure_ascii=False)}]" if onward else "]"
    return Done("\n".join(lines), data, outside=describe_source(git), meta={"commits": len(found)})


def _build_time_options(args: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, option in (("start_timestamp", "--since"), ("end_timestamp", "--until")):
        if (given := args.get(name)) is not None:
            if not WHEN.fullmatch(given.strip()):
                message = f"`{name}` is `{to_one_line(given)}`, which is not a time."
                way_out = "Write `2026-11-01`, `2026-11-01T09:30:00+01:00`, `2 weeks ago` or `yesterday`."
                raise Refusal(Problem(Code.INVALID_ARGUMENTS, message, way_out))
            words.append(f"{option}={given.strip()}")
    return words


def _parse_commit(row: Sequence[bytes]) -> dict[str, Any]:
    sha, parents, name, address, authored, committed, refs, subject, body = row
    told: dict[str, Any] = {
        "sha": sha.decode(),
        "parents": parents.decode().split(),
        "author": to_one_line(name),
        "email": to_one_line(address),
        "date": authored.decode(),
        "committed": committed.decode(),
        "subject": to_one_line(subject, 1000),
    }
    if refs:
        told["refs"] = [to_one_line(one) for one in refs.split(b", ")]
    if body.strip():
        text = to_plain_text(body).strip("\n")
        told["body"] = text if len(text) <= MOST_MESSAGE else text[: MOST_MESSAGE - 1] + "…"
    return told


def _format_commit(one: Mapping[str, Any]) -> str:
    refs = f"  ({', '.join(one['refs'])})" if "refs" in one else ""
    merge = "  (merge)" if len(one["parents"]) > 1 else ""
    return f"{one['sha'][:12]}  {one['date']}  {one['author']}  {one['subject']}{refs}{merge}"


async def show_commit(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    sha = await resolve_commit(git, args["revision"])
    listed = await git.read("log", "--no-notes", "-z", FORMAT, "--no-walk", sha, "--")
    found = next(_parse_commit(row) for row in porcelain.parse_rows(listed, len(FIELDS)))
    one = ("show", "--no-notes", "--format=")
    # Of a merge, the files as they are told apart from its first parent, and the lines that neither parent had.
    around = f"--unified={args.get('context_lines', 3)}"
    asked = PatchRequest("git_show", args, (*one, "-m", "--first-parent", sha), (*one, "--cc", around, sha))
    told = await read_patch(git, asked, tuple(_format_commit_head(found)) if args.get("offset", 1) == 1 else ())
    return Done(told.text, {"commit": found, **told.data}, outside=describe_source(git), meta={"files": told.total})


def _format_commit_head(one: Mapping[str, Any]) -> list[str]:
    lines = [f"commit {one['sha']}"]
    if len(one["parents"]) > 1:
        lines.append(f"merge of {' and '.join(parent[:12] for parent in one['parents'])}")
    lines += [f"author {one['author']} <{one['email']}>", f"date   {one['date']}", "", f"    {one['subject']}"]
    if "body" in one:
        lines += ["", *(f"    {line}".rstrip() for line in one["body"].split("\n"))]
    return [*lines, ""]
