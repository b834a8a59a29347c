"""What does a commit need? Something staged, nothing in conflict, nobody else at work, and somebody who commits."""

from collections.abc import Mapping

from anyio import to_thread

from mcp_server.model.results import Code, Problem
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain
from tools.git.program import GitProgram
from tools.git.repository import find_entry, find_unfinished_operation

STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")
LOCKS = ("index.lock", "HEAD.lock")
REF, MOST_HEAD = "ref: ", 4096
NO_MESSAGE = Problem(Code.INVALID_ARGUMENTS, "The message is empty; nothing was committed.", "Say what changed.")


async def find_commit_problem(git: GitProgram) -> Problem | None:
    """Why there is nothing that could be committed."""
    if problem := await to_thread.run_sync(_find_lock_problem, git):
        return problem
    found = porcelain.parse_status(await git.read(*STATUS))
    conflicts = [one for one in found.entries if one.conflict]
    if conflicts:
        names = ", ".join(f"`{to_one_line(one.path)}`" for one in conflicts[:5])
        count = escape.format_count(len(conflicts), "file is", "files are")
        message = f"{count} in conflict ({names}); nothing was committed."
        return Problem(Code.WRONG_STATE, message, "Resolve the conflicts in the files, then stage them with git_add.")
    merging = await to_thread.run_sync(find_unfinished_operation, git.ctx.files, git.repository) == "merge"
    if merging or any(one.staged for one in found.entries):
        return None
    changed = len(found.entries)
    more = f" {escape.format_count(changed, 'changed file is', 'changed files are')} not staged." if changed else ""
    return Problem(
        Code.WRONG_STATE,
        f"Nothing is staged, so the commit would be empty; nothing was committed.{more}",
        'Stage files first with git_add, such as {"files": ["."]}.',
    )


def _find_lock_problem(git: GitProgram) -> Problem | None:
    """Git would find the same out by failing, after somebody was asked."""
    files, here = git.ctx.files, git.repository
    head = files.read(f"{here.folder}/HEAD", MOST_HEAD).data.decode("utf-8", "surrogateescape").strip()
    places = [f"{here.folder}/{name}" for name in LOCKS]
    places += [f"{here.common}/{head.removeprefix(REF)}.lock"] if head.startswith(REF) else []
    for place in places:
        if find_entry(files, place):
            return Problem(
                Code.WRONG_STATE,
                f"`{to_one_line(place)}` is there: another git is at work in this repository, or was stopped in "
                "the "
                "middle of it; nothing was committed.",
                "Call again when it has ended. If no git is running, have the user delete that file.",
            )
    return None


async def read_signer(git: GitProgram) -> Mapping[str, str] | Problem:
    """Who commits: as the person's own git says in this repository."""
    signature = await git.ctx.person.find_signature(git.git_folder)
    if signature is None:
        return Problem(
            Code.WRONG_STATE,
            "Git does not know who commits, by name and address; nothing was committed.",
            "Have the person say so once: `git config --global user.name NAME` and `git config --global user.email "
            "ADDRESS`.",
        )
    (author, address), (committer, reply) = signature
    return {
        "GIT_AUTHOR_NAME": author,
        "GIT_AUTHOR_EMAIL": address,
        "GIT_COMMITTER_NAME": committer,
        "GIT_COMMITTER_EMAIL": reply,
    }
