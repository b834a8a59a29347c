"""How is a commit made? From what is staged, without hooks unless the call asks for them, never signed.

It needs staged changes, no conflicts, no other git at work, and a name and address.
"""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import format_count, to_one_line
from mcp_server.model.tools import Arguments
from tools.git import escape, porcelain, snapshot
from tools.git.hooks import Hooks, describe_hooks, find_hooks
from tools.git.patch import MAX_LISTED_FILES, build_changes_data, format_changes, format_summary, read_change_details
from tools.git.program import GitProgram, open_repository
from tools.git.repository import find_entry, find_unfinished_operation
from tools.git.revisions import read_head

STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")
LOCKS = ("index.lock", "HEAD.lock")
REF, MAX_HEAD_BYTES = "ref: ", 4096
NO_MESSAGE = Problem(Code.INVALID_ARGUMENTS, "The message is empty; nothing was committed.", "Say what changed.")


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
    return Done("\n".join(lines), data, outside=git.source, meta={"files": len(changes)})


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


async def read_commit_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    """Read what the commit's approval shows."""
    git = await open_repository(ctx, args.get("repo_path", ""))
    # Don't ask about a commit that would fail.
    problem = await find_commit_problem(git) if args["message"].strip() else NO_MESSAGE
    signer = problem or await read_signer(git)
    if isinstance(signer, Problem):
        raise Refusal(signer)
    hooks = await describe_hooks(git, await find_hooks(git), bool(args.get("run_hooks")))
    return await snapshot.build_commit_facts(git, {**signer, **hooks})


async def find_commit_problem(git: GitProgram) -> Problem | None:
    """Say why git could not commit now; None if it could."""
    if problem := await to_thread.run_sync(_find_lock_problem, git):
        return problem
    status = porcelain.parse_status(await git.read(*STATUS))
    conflicts = [entry for entry in status.entries if entry.conflict]
    if conflicts:
        names = escape.format_names([to_one_line(entry.path) for entry in conflicts])
        count = format_count(len(conflicts), "file is", "files are")
        message = f"{count} in conflict ({names}); nothing was committed."
        return Problem(Code.WRONG_STATE, message, "Resolve the conflicts in the files, then stage them with git_add.")
    merging = await to_thread.run_sync(find_unfinished_operation, git.ctx.files, git.repository) == "merge"
    if merging or any(entry.staged for entry in status.entries):
        return None
    unstaged = len(status.entries)
    count = f" {format_count(unstaged, 'changed file is', 'changed files are')} not staged." if unstaged else ""
    return Problem(
        Code.WRONG_STATE,
        f"Nothing is staged, so the commit would be empty; nothing was committed.{count}",
        'Stage files first with git_add, such as {"files": ["."]}.',
    )


def _find_lock_problem(git: GitProgram) -> Problem | None:
    """Look for git's lock files. Git would refuse as well, but only after the user was asked."""
    files, repository = git.ctx.files, git.repository
    head = files.read(f"{repository.folder}/HEAD", MAX_HEAD_BYTES).data.decode("utf-8", "surrogateescape").strip()
    paths = [f"{repository.folder}/{name}" for name in LOCKS]
    paths += [f"{repository.common}/{head.removeprefix(REF)}.lock"] if head.startswith(REF) else []
    for path in paths:
        if find_entry(files, path):
            return Problem(
                Code.WRONG_STATE,
                f"`{to_one_line(path)}` exists: another git is running in this repository, or was killed; nothing was "
                "committed.",
                "Call again when that git has finished. If no git is running, ask the user to delete that file.",
            )
    return None


async def read_signer(git: GitProgram) -> Mapping[str, str] | Problem:
    """Return author and committer as the user's own git has them for this repository."""
    signature = await git.ctx.person.find_signature(git.git_folder)
    if signature is None:
        return Problem(
            Code.WRONG_STATE,
            "Git has no name or email address for the commit; nothing was committed.",
            "Ask the user to run `git config --global user.name NAME` and `git config --global user.email ADDRESS` "
            "once.",
        )
    (author, author_email), (committer, committer_email) = signature
    return {
        "GIT_AUTHOR_NAME": author,
        "GIT_AUTHOR_EMAIL": author_email,
        "GIT_COMMITTER_NAME": committer,
        "GIT_COMMITTER_EMAIL": committer_email,
    }
