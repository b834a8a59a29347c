"""How is a commit made? From what is staged, without hooks unless the call asks for them, never signed."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Ending, Problem
from mcp_server.model.text import to_one_line
from tools.git import porcelain, snapshot
from tools.git.contents import read_change_details
from tools.git.diff import describe_source
from tools.git.hooks import Hooks, describe_hooks, find_hooks
from tools.git.patch import MAX_LISTED_FILES, build_changes_data, format_changes, format_summary
from tools.git.program import GitProgram, open_repository
from tools.git.requirements import NO_MESSAGE, STATUS, find_commit_problem, read_signer
from tools.git.revisions import read_head


async def commit(ctx: Context, args: Mapping[str, Any]) -> Ending:
    if not args["message"].strip():
        return NO_MESSAGE
    git = await open_repository(ctx, args.get("repo_path", ""), run_hooks=bool(args.get("run_hooks", False)))
    if problem := await find_commit_problem(git):
        return problem
    signer = await read_signer(git)
    if isinstance(signer, Problem):
        return signer
    hooks = await find_hooks(git)
    if ctx.stands is None:
        await _record_commit(git, args["message"], signer)
    else:
        facts = {**signer, **await describe_hooks(git, hooks, git.run_hooks)}
        async with snapshot.open_index_copy(git, ctx.stands, facts) as git_on_copy:
            await _record_commit(git_on_copy, args["message"], signer)
    return await _build_commit_answer(git, hooks)


async def _record_commit(git: GitProgram, message: str, signer: Mapping[str, str]) -> None:
    await git.change(
        *("commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--no-status", "--file=-"),
        stdin=message.encode(),
        env=signer,
    )


async def _build_commit_answer(git: GitProgram, hooks: Hooks) -> Ending:
    sha = await read_head(git) or ""
    branch = porcelain.parse_status(await git.read(*STATUS)).branch
    show = ("show", "--no-notes", "--format=", "--no-ext-diff", "--no-textconv", "-m", "--first-parent")
    listing = (snapshot.WITH_SUBMODULES, "--find-renames", "--raw", "--numstat", "-z", "--no-abbrev")
    changes = porcelain.parse_changes(await git.read(*show, *listing, sha))
    subject = to_one_line((await git.read("log", "--format=%s", "--no-walk", sha)).rstrip(b"\n"))
    target = f"on {to_one_line(branch)}" if branch else "on no branch (detached HEAD)"
    files = format_changes(changes, await read_change_details(git, changes[:MAX_LISTED_FILES]), "  ")
    lines = [
        f"Committed {sha[:12]} {target}: {subject}",
        format_summary(changes),
        *files,
        *_format_hook_notes(git, hooks),
    ]
    data: dict[str, Any] = {
        "sha": sha,
        "branch": to_one_line(branch) if branch else None,
        **build_changes_data(changes),
        "hooks_run": git.run_hooks,
        "hooks": [to_one_line(name) for name in hooks.names],
    }
    return Done("\n".join(lines), data, outside=describe_source(git), meta={"files": len(changes)})


def _format_hook_notes(git: GitProgram, hooks: Hooks) -> list[str]:
    if git.run_hooks:
        return ["[The repository's hooks were allowed to run.]"]
    if hooks.outside:
        return [f"[The hooks in `{to_one_line(hooks.folder)}`, outside the workspace, were not run.]"]
    if not hooks.names:
        return []
    names = ", ".join(hooks.names)
    allowed = git.ctx.processes.profile.covers(Profile.TRUSTED)
    condition = "" if allowed else " at the profile `trusted`, which only the user can set"
    return [f"[The repository's hooks ({names}) were not run; `run_hooks` runs them{condition}.]"]
