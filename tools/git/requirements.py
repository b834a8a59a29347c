"""What does a commit need? Staged changes, no conflicts, no other git at work, and a name and address."""

from collections.abc import Mapping

from anyio import to_thread

from mcp_server.model.results import Code, Problem
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain
from tools.git.program import GitProgram
from tools.git.repository import find_entry, find_unfinished_operation

STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")
LOCKS = ("index.lock", "HEAD.lock")
REF, MAX_HEAD_BYTES = "ref: ", 4096
NO_MESSAGE = Problem(Code.INVALID_ARGUMENTS, "The message is empty; nothing was committed.", "Say what changed.")


async def find_commit_problem(git: GitProgram) -> Problem | None:
    """Say why git could not commit now; None if it could."""
    if problem := await to_thread.run_sync(_find_lock_problem, git):
        return problem
    status = porcelain.parse_status(await git.read(*STATUS))
    conflicts = [entry for entry in status.entries if entry.conflict]
    if conflicts:
        names = escape.format_names([to_one_line(entry.path) for entry in conflicts])
        count = escape.format_count(len(conflicts), "file is", "files are")
        message = f"{count} in conflict ({names}); nothing was committed."
        return Problem(Code.WRONG_STATE, message, "Resolve the conflicts in the files, then stage them with git_add.")
    merging = await to_thread.run_sync(find_unfinished_operation, git.ctx.files, git.repository) == "merge"
    if merging or any(entry.staged for entry in status.entries):
        return None
    unstaged = len(status.entries)
    count = f" {escape.format_count(unstaged, 'changed file is', 'changed files are')} not staged." if unstaged else ""
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
