"""How is a commit made? From what is staged, without a hook or a signature that nobody asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.ending import Code, Done, Ending, Problem
from mcp_server.model.ports.context import Context
from tools.git import plain, records
from tools.git.diffs import source
from tools.git.patches import MOST_FILES, MOST_LISTED, said, summary, told
from tools.git.program import Git, opened
from tools.git.records import Change
from tools.git.repository import hooks, operation
from tools.git.revisions import head

STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")


async def commit(ctx: Context, args: Mapping[str, Any]) -> Ending:
    if not args["message"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "The message is empty; nothing was committed.", "Say what changed.")
    asked = bool(args.get("run_hooks", False))
    git = await opened(ctx, args.get("repo_path", ""), run_hooks=asked)
    if problem := await _unready(git):
        return problem
    signer = await _signer(git)
    if isinstance(signer, Problem):
        return signer
    lying = await to_thread.run_sync(hooks, ctx.files, git.repository)
    await git.change(
        *("commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--no-status", "--file=-"),
        stdin=args["message"].encode(),
        env=signer,
    )
    return await _done(git, lying, asked)


async def _unready(git: Git) -> Problem | None:
    """Why there is nothing that could be committed."""
    found = records.status(await git.read(*STATUS))
    conflicts = [one for one in found.entries if one.conflict]
    if conflicts:
        names = ", ".join(f"`{plain.inline(one.path)}`" for one in conflicts[:5])
        message = f"{plain.count(len(conflicts), 'file is', 'files are')} in conflict ({names}); nothing was committed."
        return Problem(Code.WRONG_STATE, message, "Resolve the conflicts in the files, then stage them with git_add.")
    merging = await to_thread.run_sync(operation, git.ctx.files, git.repository) == "merge"
    if merging or any(one.staged for one in found.entries):
        return None
    changed = len(found.entries)
    more = f" {plain.count(changed, 'changed file is', 'changed files are')} not staged." if changed else ""
    return Problem(
        Code.WRONG_STATE,
        f"Nothing is staged, so the commit would be empty; nothing was committed.{more}",
        'Stage files first with git_add, such as {"files": ["."]}.',
    )


async def _signer(git: Git) -> Mapping[str, str] | Problem:
    """Who commits: as the repository says, and where it is silent as the person's own git does."""
    named = [await git.test("config", "--get", key) for key in ("user.name", "user.email")]
    if all(one.code == 0 and one.out.strip() for one in named):
        return {}
    signature = await git.ctx.person.signature()
    if signature is None:
        return Problem(
            Code.WRONG_STATE,
            "Git does not know who commits; nothing was committed.",
            "Have the person say so once: `git config --global user.name NAME` and `git config --global user.email "
            "ADDRESS`.",
        )
    name, address = signature
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": address,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": address,
    }


async def _done(git: Git, lying: Sequence[str], asked: bool) -> Ending:
    sha = await head(git) or ""
    branch = records.status(await git.read(*STATUS)).branch
    one = ("show", "--no-notes", "--format=", "--no-ext-diff", "--no-textconv", "-m", "--first-parent")
    changes = records.changes(await git.read(*one, "--find-renames", "--raw", "--numstat", "-z", "--no-abbrev", sha))
    subject = plain.inline((await git.read("log", "--format=%s", "--no-walk", sha)).rstrip(b"\n"))
    where = f"on {plain.inline(branch)}" if branch else "on no branch (detached HEAD)"
    notes = _notes(lying, asked)
    lines = [f"Committed {sha[:12]} {where}: {subject}", summary(changes), *_files(changes), *notes]
    data: dict[str, Any] = {
        "sha": sha,
        "branch": plain.inline(branch) if branch else None,
        "files": [said(change) for change in changes[:MOST_FILES]],
        "total": len(changes),
        "truncated": len(changes) > MOST_FILES,
        "next": None,
        "hooks_run": asked,
        "hooks": [plain.inline(name) for name in lying],
    }
    return Done("\n".join(lines), data, outside=source(git), meta={"files": len(changes)})


def _files(changes: Sequence[Change]) -> list[str]:
    more = len(changes) - MOST_LISTED
    tail = [f"... and {plain.count(more, 'more file', 'more files')}"] if more > 0 else []
    return [*(f"  {told(change)}" for change in changes[:MOST_LISTED]), *tail]


def _notes(lying: Sequence[str], asked: bool) -> list[str]:
    if asked:
        return ["[The repository's hooks were allowed to run.]"]
    if not lying:
        return []
    names = ", ".join(plain.inline(name) for name in lying[:8])
    return [f"[The repository's hooks ({names}) were not run; `run_hooks` runs them.]"]
