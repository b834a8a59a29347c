"""What does a commit need? Something staged, nothing in conflict, and somebody who commits."""

from collections.abc import Mapping

from anyio import to_thread

from mcp_server.model.ending import Code, Problem
from tools.git import plain, records
from tools.git.program import Git
from tools.git.repository import operation

STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")
NO_MESSAGE = Problem(Code.INVALID_ARGUMENTS, "The message is empty; nothing was committed.", "Say what changed.")


async def unready(git: Git) -> Problem | None:
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


async def signer(git: Git) -> Mapping[str, str] | Problem:
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
