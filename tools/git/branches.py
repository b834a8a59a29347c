"""Which branches are there? Lists, creates and checks out local branches."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import is_protected
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import format_count, to_one_line
from mcp_server.model.tools import Arguments
from tools.git import escape, porcelain
from tools.git.porcelain import GitStatus
from tools.git.program import GitProgram, open_repository
from tools.git.revisions import check_branch_name, describe_nearest_names, find_branch_tip, read_head, resolve_commit
from tools.git.snapshot import read_branch_facts

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


async def checkout(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    name = await check_branch_name(git, args["branch_name"])
    target = await find_branch_tip(git, name)
    if target is None:
        raise await _build_missing_branch_refusal(git, name)
    status = porcelain.parse_status(
        await git.read("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no")
    )
    start = f"`{to_one_line(status.branch)}`" if status.branch else f"a detached HEAD at {(status.commit or '')[:12]}"
    if status.branch == name:
        return Done(f"Already on {start}; nothing was changed.", _build_checkout_data(status, name, target, 0))
    if status.entries and not args.get("keep_changes"):
        return _build_dirty_problem(status)
    changed = await _find_differing_paths(git, status.commit, target)
    protected = [path for path in changed if is_protected(path)]
    if protected and not args.get("obeyed_files"):
        return _build_protected_problem(protected)
    await to_thread.run_sync(_raise_if_unwritable, git, changed)
    writable = (git.repository.top, *(git.repository.to_workspace_path(path) for path in protected))
    await replace(git, writable_files=writable).change(
        "switch", "--quiet", "--no-guess", "--no-recurse-submodules", "--", name
    )
    text = f"Switched from {start} ({(status.commit or 'no commit')[:12]}) to `{to_one_line(name)}` ({target[:12]}); "
    text += f"{format_count(len(changed), 'file differs', 'files differ')}."
    if status.entries:
        text += f" Kept {format_count(len(status.entries), 'uncommitted change')}."
    return Done(text, _build_checkout_data(status, name, target, len(changed)))


def _raise_if_unwritable(git: GitProgram, changed: Sequence[str]) -> None:
    """Raise a `Refusal` if git would write where no tool may, such as in menugate's own state."""
    for path in changed:
        try:
            git.ctx.files.get_info(git.repository.to_workspace_path(path))
        except Refusal as refusal:
            if refusal.problem.code is not Code.NOT_FOUND:
                raise


def _build_checkout_data(status: GitStatus, name: str, target: str, files: int) -> dict[str, Any]:
    return {
        "from": {"branch": to_one_line(status.branch) if status.branch else None, "sha": status.commit},
        "to": {"branch": to_one_line(name), "sha": target},
        "files": files,
    }


async def read_checkout_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    """Read what the approval of a checkout shows."""
    if not args.get("obeyed_files"):
        return {}
    git = await open_repository(ctx, args.get("repo_path", ""))
    tip = await find_branch_tip(git, await check_branch_name(git, args["branch_name"]))
    return {**await read_branch_facts(git), "its commit": tip or "none"}


async def _find_differing_paths(git: GitProgram, start: str | None, target: str) -> list[str]:
    """List the files that a checkout would write."""
    ends = (start, target) if start else ("--root", target)
    result = await git.read_result("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", *ends)
    if result.cut:
        message = "The branches differ in more files than menugate can check; nothing was changed."
        raise Refusal.because(Code.TOO_LARGE, message, "Ask the user to switch the branch.")
    return [path.decode("utf-8", "surrogateescape") for path in result.out.split(b"\0")[:-1]]


def _build_dirty_problem(status: GitStatus) -> Problem:
    names = escape.format_names([to_one_line(entry.path) for entry in status.entries])
    files = format_count(len(status.entries), "file has", "files have")
    return Problem(
        Code.WRONG_STATE,
        f"{files} uncommitted changes ({names}); the branch was not changed.",
        "Commit them first with git_commit, or set `keep_changes` to keep them; git refuses if they would be lost.",
    )


def _build_protected_problem(paths: Sequence[str]) -> Problem:
    names = escape.format_names([to_one_line(path) for path in paths])
    return Problem(
        Code.PATH_REFUSED,
        f"The branch has different versions of {names}, which decide what other programs run; nothing was changed.",
        "Call again with `obeyed_files` set to true, so that the user is asked.",
    )


async def _build_missing_branch_refusal(git: GitProgram, name: str) -> Refusal:
    suggestion = await describe_nearest_names(git, name)
    return Refusal.because(
        Code.NOT_FOUND,
        f"There is no local branch `{to_one_line(name)}` in {git.repository.name}.{suggestion}",
        "git_checkout switches to local branches only. git_create_branch creates one; its `base_branch` may be a "
        "commit, a tag or a remote branch.",
    )
