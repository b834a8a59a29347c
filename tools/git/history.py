"""What was committed, by whom and when? The log, and one commit with its changes."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Refusal
from mcp_server.model.text import escape_for_model, to_one_line
from tools.git import porcelain
from tools.git.patch import PatchRequest, read_patch
from tools.git.paths import locate_paths
from tools.git.program import GitProgram, open_repository
from tools.git.revisions import read_head, resolve_commit

MAX_COUNTED_COMMITS = 10_000
MAX_MESSAGE_CHARS = 4_000
FIELDS = ("H", "P", "an", "ae", "aI", "cI", "D", "s", "b")
FORMAT = f"--format={'%x00'.join(f'%{field}' for field in FIELDS)}"
TIME = re.compile(
    r"@?\d{9,11}"
    r"|\d{4}-\d{2}-\d{2}([T ]\d{1,2}:\d{2}(:\d{2})?( ?(Z|[+-]\d{2}:?\d{2}))?)?"
    r"|(now|today|yesterday|noon|midnight)"
    r"|(\d+|a|an|one|two|three|four|five|six|seven|eight|nine|ten|last)[ .]"
    r"(second|minute|hour|day|week|month|year)s?([ .]ago)?"
    r"|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2},? \d{4}",
    re.IGNORECASE,
)
"""Git accepts any words as a time, and takes those it does not understand as now; so we check."""


async def show_log(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    start = await resolve_commit(git, args["revision"]) if "revision" in args else await read_head(git)
    if start is None:
        return Done("There is no commit yet.", {"commits": [], "total": 0, "truncated": False, "next": None})
    paths = await to_thread.run_sync(locate_paths, ctx.files, git.repository, args.get("paths", ()))
    selection = (*_build_time_options(args), start, "--", *paths)
    count, offset = args.get("max_count", 10), args.get("offset", 0)
    output = await git.read("log", "--no-notes", "-z", FORMAT, f"--max-count={count}", f"--skip={offset}", *selection)
    commits = [_parse_commit(row) for row in porcelain.parse_rows(output, len(FIELDS))]
    total = int(await git.read("rev-list", "--count", f"--max-count={MAX_COUNTED_COMMITS}", *selection))
    return _build_log_answer(git, args, commits, total)


def _build_log_answer(
    git: GitProgram, args: Mapping[str, Any], commits: Sequence[Mapping[str, Any]], total: int
) -> Ending:
    offset = args.get("offset", 0)
    end = offset + len(commits)
    next_call = dict(args) | {"offset": end} if commits and end < total else None
    data = {"commits": commits, "total": total, "truncated": next_call is not None, "next": next_call}
    if not commits:
        return Done(f"No commits{f' after the first {total:,}' if offset and total else ' match'}.", data)
    lines = [_format_commit(commit) for commit in commits]
    if next_call or offset:
        at_least = "at least " if total == MAX_COUNTED_COMMITS else ""
        lines.append(f"[Commits {offset + 1:,}-{end:,} of {at_least}{total:,}.")
        lines[-1] += f" Continue with git_log {json.dumps(next_call, ensure_ascii=False)}]" if next_call else "]"
    return Done("\n".join(lines), data, outside=git.source, meta={"commits": len(commits)})


def _build_time_options(args: Mapping[str, Any]) -> list[str]:
    options: list[str] = []
    for name, option in (("start_timestamp", "--since"), ("end_timestamp", "--until")):
        if (time := args.get(name)) is not None:
            if not TIME.fullmatch(time.strip()):
                message = f"`{name}` is `{to_one_line(time)}`, which is not a time."
                way_out = "Write `2026-11-01`, `2026-11-01T09:30:00+01:00`, `2 weeks ago` or `yesterday`."
                raise Refusal.because(Code.INVALID_ARGUMENTS, message, way_out)
            options.append(f"{option}={time.strip()}")
    return options


def _parse_commit(row: Sequence[bytes]) -> dict[str, Any]:
    sha, parents, name, email, author_date, commit_date, refs, subject, body = row
    commit: dict[str, Any] = {
        "sha": sha.decode(),
        "parents": parents.decode().split(),
        "author": to_one_line(name),
        "email": to_one_line(email),
        "date": author_date.decode(),
        "committed": commit_date.decode(),
        "subject": to_one_line(subject, 1000),
    }
    if refs:
        commit["refs"] = [to_one_line(ref) for ref in refs.split(b", ")]
    if body.strip():
        text = escape_for_model(body).strip("\n")
        commit["body"] = text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"
    return commit


def _format_commit(commit: Mapping[str, Any]) -> str:
    refs = f"  ({', '.join(commit['refs'])})" if "refs" in commit else ""
    merge = "  (merge)" if len(commit["parents"]) > 1 else ""
    return f"{commit['sha'][:12]}  {commit['date']}  {commit['author']}  {commit['subject']}{refs}{merge}"


async def show_commit(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    sha = await resolve_commit(git, args["revision"])
    output = await git.read("log", "--no-notes", "-z", FORMAT, "--no-walk", sha, "--")
    commit = next(_parse_commit(row) for row in porcelain.parse_rows(output, len(FIELDS)))
    show = ("show", "--no-notes", "--format=")
    # For a merge, list the files that differ from the first parent, and show the lines that differ from every parent.
    context = f"--unified={args.get('context_lines', 3)}"
    request = PatchRequest("git_show", args, (*show, "-m", "--first-parent", sha), (*show, "--cc", context, sha))
    patch = await read_patch(git, request, _format_commit_heading(commit) if args.get("offset", 1) == 1 else ())
    data = {"commit": commit, **patch.data}
    return Done(patch.text, data, outside=git.source, meta={"files": patch.file_count})


def _format_commit_heading(commit: Mapping[str, Any]) -> tuple[str, ...]:
    lines = [f"commit {commit['sha']}"]
    if len(commit["parents"]) > 1:
        lines.append(f"merge of {' and '.join(parent[:12] for parent in commit['parents'])}")
    lines += [f"author {commit['author']} <{commit['email']}>", f"date   {commit['date']}", ""]
    lines.append(f"    {commit['subject']}")
    if "body" in commit:
        lines += ["", *(f"    {line}".rstrip() for line in commit["body"].split("\n"))]
    return (*lines, "")
