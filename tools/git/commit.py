"""How is a commit made? From what is staged, without a hook or a signature that nobody asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Ending, Problem
from tools.git import escape, porcelain, snapshot
from tools.git.contents import details
from tools.git.diff import source
from tools.git.hooks import Hooks, describe_hooks, find_hooks
from tools.git.patch import MOST_FILES, MOST_LISTED, said, summary, told
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram, opened
from tools.git.requirements import NO_MESSAGE, STATUS, signer, unready
from tools.git.revisions import head


async def commit(ctx: Context, args: Mapping[str, Any]) -> Ending:
    if not args["message"].strip():
        return NO_MESSAGE
    asked = bool(args.get("run_hooks", False))
    git = await opened(ctx, args.get("repo_path", ""), run_hooks=asked)
    if problem := await unready(git):
        return problem
    who = await signer(git)
    if isinstance(who, Problem):
        return who
    lying = await find_hooks(git)
    if ctx.stands is None:
        await _record(git, args["message"], who)
    else:
        runs = await describe_hooks(git, lying, asked)
        async with snapshot.of_index(git, ctx.stands, {**who, **runs}) as apart:
            await _record(apart, args["message"], who)
    return await _done(git, lying, asked)


async def _record(git: GitProgram, message: str, who: Mapping[str, str]) -> None:
    await git.change(
        *("commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--no-status", "--file=-"),
        stdin=message.encode(),
        env=who,
    )


async def _done(git: GitProgram, lying: Hooks, asked: bool) -> Ending:
    sha = await head(git) or ""
    branch = porcelain.status(await git.read(*STATUS)).branch
    one = ("show", "--no-notes", "--format=", "--no-ext-diff", "--no-textconv", "-m", "--first-parent")
    changes = porcelain.changes(
        await git.read(*one, snapshot.ALL, "--find-renames", "--raw", "--numstat", "-z", "--no-abbrev", sha)
    )
    subject = escape.inline((await git.read("log", "--format=%s", "--no-walk", sha)).rstrip(b"\n"))
    where = f"on {escape.inline(branch)}" if branch else "on no branch (detached HEAD)"
    notes = _notes(git, lying, asked)
    listed = await _files(git, changes)
    lines = [f"Committed {sha[:12]} {where}: {subject}", summary(changes), *listed, *notes]
    data: dict[str, Any] = {
        "sha": sha,
        "branch": escape.inline(branch) if branch else None,
        "files": [said(change) for change in changes[:MOST_FILES]],
        "total": len(changes),
        "truncated": len(changes) > MOST_FILES,
        "next": None,
        "hooks_run": asked,
        "hooks": [escape.inline(name) for name in lying.names],
    }
    return Done("\n".join(lines), data, outside=source(git), meta={"files": len(changes)})


async def _files(git: GitProgram, changes: Sequence[FileChange]) -> list[str]:
    more_of = await details(git, changes[:MOST_LISTED])
    more = len(changes) - MOST_LISTED
    tail = [f"... and {escape.count(more, 'more file', 'more files')}"] if more > 0 else []
    return [*(f"  {told(change, more_of.get(change.path, ''))}" for change in changes[:MOST_LISTED]), *tail]


def _notes(git: GitProgram, lying: Hooks, asked: bool) -> list[str]:
    if asked:
        return ["[The repository's hooks were allowed to run.]"]
    if lying.outside:
        return [f"[The hooks in `{escape.inline(lying.folder)}`, which is outside the workspace, were not run.]"]
    if not lying.names:
        return []
    names = ", ".join(lying.names)
    allowed = git.ctx.processes.profile.covers(Profile.TRUSTED)
    where = "" if allowed else " at the profile `trusted`, which only the user can set"
    return [f"[The repository's hooks ({names}) were not run; `run_hooks` runs them{where}.]"]
