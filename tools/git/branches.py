"""Which branches are there, how does one come to be, and how does one get onto it?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import is_protected
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain
from tools.git.diff import describe_source
from tools.git.porcelain import GitStatus
from tools.git.program import GitProgram, open_repository
from tools.git.revisions import check_branch_name, describe_nearest_names, find_branch_tip, read_head, resolve_commit

FIELDS = "refname objectname HEAD upstream:short upstream:track,nobracket committerdate:iso-strict contents:subject"
FORMAT = f"--format={'%00'.join(f'%({field})' for field in FIELDS.split())}%00"
LOCAL, REMOTE = "refs/heads/", "refs/remotes/"
MOST_BRANCHES = 200


async def list_branches(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    under = (LOCAL, REMOTE) if args.get("show_remote") else (LOCAL,)
    listed = await git.read("for-each-ref", "--sort=refname", FORMAT, *under)
    found = [_parse_branch(row) for row in porcelain.parse_rows(listed.replace(b"\0\n", b"\0"), len(FIELDS.split()))]
    offset = args.get("offset", 0)
    part = found[offset : offset + MOST_BRANCHES]
    end = offset + len(part)
    onward = dict(args) | {"offset": end} if end < len(found) else None
    now = porcelain.parse_status(await git.read(*HEAD_ONLY))
    lines = [_format_branch(one) for one in part] or ["There is no branch yet: the first commit makes one."]
    if now.branch is None:
        lines.insert(0, f"* (no branch: detached HEAD at {(now.commit or '')[:12]})")
    if onward:
        lines.append(f"[Branches {offset + 1:,}-{end:,} of {len(found):,}. Go on with git_branch_list, offset {end}.]")
    data: dict[str, Any] = {
        "current": to_one_line(now.branch) if now.branch else None,
        "branches": part,
        "total": len(found),
        "truncated": onward is not None,
        "next": onward,
    }
    return Done("\n".join(lines), data, outside=describe_source(git), meta={"branches": len(found)})


HEAD_ONLY = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all")


def _parse_branch(row: Sequence[bytes]) -> dict[str, Any]:
    name, sha, mark, upstream, track, date, subject = row
    remote = name.startswith(REMOTE.encode())
    told: dict[str, Any] = {
        "name": to_one_line(name.removeprefix(LOCAL.encode()).removeprefix(REMOTE.encode()), 250),
        "remote": remote,
        "current": mark == b"*",
        "sha": sha.decode(),
        "date": date.decode(),
        "subject": to_one_line(subject),
    }
    if upstream:
        told |= {"upstream": to_one_line(upstream), "track": to_one_line(track) or "level"}
    return told


def _format_branch(one: Mapping[str, Any]) -> str:
    name = f"remotes/{one['name']}" if one["remote"] else one["name"]
    beside = f"  [{one['upstream']}: {one['track']}]" if "upstream" in one else ""
    return f"{'*' if one['current'] else ' '} {name}  {one['sha'][:12]}  {one['date']}  {one['subject']}{beside}"


async def create_branch(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    name = await check_branch_name(git, args["branch_name"])
    if await find_branch_tip(git, name):
        message = f"There is a branch `{to_one_line(name)}` already; it was left as it is."
        return Problem(Code.ALREADY_EXISTS, message, "Choose another name, or go there with git_checkout.")
    base = await resolve_commit(git, args["base_branch"]) if "base_branch" in args else await read_head(git)
    if base is None:
        message = "There is no commit yet that a branch could begin at."
        return Problem(Code.WRONG_STATE, message, "Make the first commit with git_commit.")
    await git.change("branch", "--no-track", "--", name, base)
    began = f" (`{to_one_line(args['base_branch'])}`)" if "base_branch" in args else ""
    text = f"Created the branch `{to_one_line(name)}` at {base[:12]}{began}. git_checkout goes there."
    return Done(text, {"branch": to_one_line(name), "sha": base})


async def checkout(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    name = await check_branch_name(git, args["branch_name"])
    target = await find_branch_tip(git, name)
    if target is None:
        raise await _build_missing_branch_refusal(git, name)
    now = porcelain.parse_status(await git.read("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no"))
    where = f"`{to_one_line(now.branch)}`" if now.branch else f"a detached HEAD at {(now.commit or '')[:12]}"
    if now.branch == name:
        return Done(f"Already on {where}; nothing was changed.", _build_checkout_data(now, name, target, 0))
    if now.entries and not args.get("keep_changes"):
        return _build_dirty_problem(now)
    changed = await _find_differing_paths(git, now.commit, target)
    obeyed = [path for path in changed if is_protected(path)]
    if obeyed and not args.get("obeyed_files"):
        return _build_protected_problem(obeyed)
    await to_thread.run_sync(_raise_if_unwritable, git, changed)
    unlocked = (git.repository.top, *(git.repository.to_workspace_path(path) for path in obeyed))
    going = replace(git, unlocked=unlocked)
    await going.change("switch", "--quiet", "--no-guess", "--no-recurse-submodules", "--", name)
    files = escape.format_count(len(changed), "file")
    along = f" {escape.format_count(len(now.entries), 'uncommitted change')} came along." if now.entries else ""
    text = f"Went from {where} ({(now.commit or 'no commit')[:12]}) to `{to_one_line(name)}` ({target[:12]}); "
    return Done(f"{text}{files} differ.{along}", _build_checkout_data(now, name, target, len(changed)))


def _raise_if_unwritable(git: GitProgram, changed: Sequence[str]) -> None:
    """Every file that is written lies where a tool may write at all: menugate's own state is no place for them."""
    for path in changed:
        try:
            git.ctx.files.get_info(git.repository.to_workspace_path(path))
        except Refusal as refusal:
            if refusal.problem.code is not Code.NOT_FOUND:
                raise


def _build_checkout_data(now: GitStatus, name: str, target: str, files: int) -> dict[str, Any]:
    return {
        "from": {"branch": to_one_line(now.branch) if now.branch else None, "sha": now.commit},
        "to": {"branch": to_one_line(name), "sha": target},
        "files": files,
    }


async def _find_differing_paths(git: GitProgram, start: str | None, target: str) -> list[str]:
    """Every file that is another one there."""
    ends = (start, target) if start else (target,)
    root = () if start else ("--root",)
    ran = await git.read_result("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", *root, *ends)
    if ran.cut:
        message = "The branches differ in more files than can be looked at; nothing was changed."
        raise Refusal(Problem(Code.TOO_LARGE, message, "Have the person switch the branch."))
    return [path.decode("utf-8", "surrogateescape") for path in ran.out.split(b"\0")[:-1]]


def _build_dirty_problem(now: GitStatus) -> Problem:
    names = ", ".join(f"`{to_one_line(one.path)}`" for one in now.entries[:5]) + (
        ", ..." if len(now.entries) > 5 else ""
    )
    are = escape.format_count(len(now.entries), "file has", "files have")
    return Problem(
        Code.WRONG_STATE,
        f"{are} changes that are not committed ({names}); the branch was not changed.",
        "Commit them first with git_commit, or set `keep_changes` to take them along, which git refuses where they "
        "would be lost.",
    )


def _build_protected_problem(obeyed: Sequence[str]) -> Problem:
    names = ", ".join(f"`{to_one_line(path)}`" for path in obeyed[:5]) + (", ..." if len(obeyed) > 5 else "")
    return Problem(
        Code.PATH_REFUSED,
        f"The branch has other versions of {names}, which decide what other programs run; nothing was changed.",
        "Call again with `obeyed_files` set to true, so that the person is asked.",
    )


async def _build_missing_branch_refusal(git: GitProgram, name: str) -> Refusal:
    near = await describe_nearest_names(git, name)
    return Refusal(
        Problem(
            Code.NOT_FOUND,
            f"There is no local branch `{to_one_line(name)}` in {git.repository.name}.{near}",
            "Only local branches are gone to. git_create_branch makes one, with `base_branch` also from a commit, a "
            "tag or a remote's branch.",
        )
    )
