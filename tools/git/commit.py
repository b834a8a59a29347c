"""How is a commit made? From what is staged, without a hook or a signature that nobody asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Ending, Problem
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain, snapshot
from tools.git.contents import read_change_details
from tools.git.diff import describe_source
from tools.git.hooks import Hooks, describe_hooks, find_hooks
from tools.git.patch import MOST_FILES, MOST_LISTED, build_change_data, format_change, format_summary
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram, open_repository
from tools.git.requirements import NO_MESSAGE, STATUS, find_commit_problem, read_signer
from tools.git.revisions import read_head


async def commit(ctx: Context, args: Mapping[str, Any]) -> Ending:
    if not args["message"].strip():
        return NO_MESSAGE
    asked = bool(args.get("run_hooks", False))
    git = await open_repository(ctx, args.get("repo_path", ""), run_hooks=asked)
    if problem := await find_commit_problem(git):
        return problem
    who = await read_signer(git)
    if isinstance(who, Problem):
        return who
    lying = await find_hooks(git)
    if ctx.stands is None:
        await _record_commit(git, args["message"], who)
    else:
        runs = await describe_hooks(git, lying, asked)
        async with snapshot.open_index_copy(git, ctx.stands, {**who, **runs}) as apart:
            await _record_commit(apart, args["message"], who)
    return await _build_commit_answer(git, lying, asked)


async def _record_commit(git: GitProgram, message: str, who: Mapping[str, str]) -> None:
    await git.change(
        *("commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--no-status", "--file=-"),
        stdin=message.encode(),
        env=who,
    )


async def _build_commit_answer(git: GitProgram, lying: Hooks, asked: bool) -> Ending:
    sha = await read_head(git) or ""
    branch = porcelain.parse_status(await git.read(*STATUS)).branch
    one = ("show", "--no-notes", "--format=", "--no-ext-diff", "--no-textconv", "-m", "--first-parent")
    changes = porcelain.parse_changes(
        await git.read(*one, snapshot.ALL, "--find-renames", "--raw", "--numstat", "-z", "--no-abbrev", sha)
    )
    subject = to_one_line((await git.read("log", "--format=%s", "--no-walk", sha)).rstrip(b"\n"))
    where = f"on {to_one_line(branch)}" if branch else "on no branch (detached HEAD)"
    notes = _format_hook_notes(git, lying, asked)
    listed = await _format_files(git, changes)
    lines = [f"Committed {sha[:12]} {where}: {subject}", format_summary(changes), *listed, *notes]
    data: dict[str, Any] = {
        "sha": sha,
        "branch": to_one_line(branch) if branch else None,
        "files": [build_change_data(change) for change in changes[:MOST_FILES]],
        "total": len(changes),
        "truncated": len(changes) > MOST_FILES,
        "next": None,
        "hooks_run": asked,
        "hooks": [to_one_line(name) for name in lying.names],
    }
    return Done("\n".join(lines), data, outside=describe_source(git), meta={"files": len(changes)})


async def _format_files(git: GitProgram, changes: Sequence[FileChange]) -> list[str]:
    more_of = await read_change_details(git, changes[:MOST_LISTED])
    more = len(changes) - MOST_LISTED
    tail = [f"... and {escape.format_count(more, 'more file', 'more files')}"] if more > 0 else []
    return [*(f"  {format_change(change, more_of.get(change.path, ''))}" for change in changes[:MOST_LISTED]), *tail]


def _format_hook_notes(git: GitProgram, lying: Hooks, asked: bool) -> list[str]:
    if asked:
        return ["[The repository's hooks were allowed to run.]"]
    if lying.outside:
        return [f"[The hooks in `{to_one_line(lying.folder)}`, which is outside the workspace, were not run.]"]
    if not lying.names:
        return []
    names = ", ".join(lying.names)
    allowed = git.ctx.processes.profile.covers(Profile.TRUSTED)
    where = "" if allowed else " at the profile `trusted`, which only the user can set"
    return [f"[The repository's hooks ({names}) were not run; `run_hooks` runs them{where}.]"]
