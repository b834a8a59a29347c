"""Which branches are there? Lists and creates local branches."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import to_one_line
from tools.git import porcelain
from tools.git.program import open_repository
from tools.git.revisions import check_branch_name, find_branch_tip, read_head, resolve_commit

FIELDS = "refname objectname HEAD upstream:short upstream:track,nobracket committerdate:iso-strict contents:subject"
FORMAT = f"--format={'%00'.join(f'%({field})' for field in FIELDS.split())}%00"
LOCAL, REMOTE = "refs/heads/", "refs/remotes/"
PAGE_BRANCHES = 200


async def list_branches(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    prefixes = (LOCAL, REMOTE) if args.get("show_remote") else (LOCAL,)
    output = await git.read("for-each-ref", "--sort=refname", FORMAT, *prefixes)
    rows = porcelain.parse_rows(output.replace(b"\0\n", b"\0"), len(FIELDS.split()))
    branches = [_parse_branch(row) for row in rows]
    offset = args.get("offset", 0)
    page = branches[offset : offset + PAGE_BRANCHES]
    end = offset + len(page)
    next_call = dict(args) | {"offset": end} if end < len(branches) else None
    status = porcelain.parse_status(await git.read(*HEAD_ONLY))
    lines = [_format_branch(branch) for branch in page] or ["There is no branch yet; the first commit creates one."]
    if status.branch is None:
        lines.insert(0, f"* (no branch: detached HEAD at {(status.commit or '')[:12]})")
    if next_call:
        lines.append(
            f"[Branches {offset + 1:,}-{end:,} of {len(branches):,}. Continue with git_branch_list, offset {end}.]"
        )
    data: dict[str, Any] = {
        "current": to_one_line(status.branch) if status.branch else None,
        "branches": page,
        "total": len(branches),
        "truncated": next_call is not None,
        "next": next_call,
    }
    return Done("\n".join(lines), data, outside=git.source, meta={"branches": len(branches)})


HEAD_ONLY = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all")


def _parse_branch(row: Sequence[bytes]) -> dict[str, Any]:
    name, sha, mark, upstream, track, date, subject = row
    remote = name.startswith(REMOTE.encode())
    branch: dict[str, Any] = {
        "name": to_one_line(name.removeprefix(LOCAL.encode()).removeprefix(REMOTE.encode()), 250),
        "remote": remote,
        "current": mark == b"*",
        "sha": sha.decode(),
        "date": date.decode(),
        "subject": to_one_line(subject),
    }
    if upstream:
        branch |= {"upstream": to_one_line(upstream), "track": to_one_line(track) or "level"}
    return branch


def _format_branch(branch: Mapping[str, Any]) -> str:
    mark = "*" if branch["current"] else " "
    name = f"remotes/{branch['name']}" if branch["remote"] else branch["name"]
    upstream = f"  [{branch['upstream']}: {branch['track']}]" if "upstream" in branch else ""
    return f"{mark} {name}  {branch['sha'][:12]}  {branch['date']}  {branch['subject']}{upstream}"


async def create_branch(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    name = await check_branch_name(git, args["branch_name"])
    if await find_branch_tip(git, name):
        message = f"The branch `{to_one_line(name)}` already exists; nothing was changed."
        return Problem(Code.ALREADY_EXISTS, message, "Choose another name, or switch to it with git_checkout.")
    base = await resolve_commit(git, args["base_branch"]) if "base_branch" in args else await read_head(git)
    if base is None:
        message = "A branch starts at a commit, and there is no commit yet."
        return Problem(Code.WRONG_STATE, message, "Make the first commit with git_commit.")
    await git.change("branch", "--no-track", "--", name, base)
    base_name = f" (`{to_one_line(args['base_branch'])}`)" if "base_branch" in args else ""
    text = f"Created the branch `{to_one_line(name)}` at {base[:12]}{base_name}. git_checkout switches to it."
    return Done(text, {"branch": to_one_line(name), "sha": base})
