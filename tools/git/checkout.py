"""How is another branch checked out? By the commit that was looked up and approved, wherever the branch leads by then.

`git switch` reads the branch and the head when it runs, so another process could move either after the user's approval.
We write the files between two commits that we name ourselves, and only then make the branch the current one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.context import Context
from mcp_server.model.files import DirectoryEntry, is_protected, is_secret
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import format_count, to_one_line
from mcp_server.model.tools import Arguments
from tools.git import escape, porcelain
from tools.git.patch import FORMAT, format_change, format_changes
from tools.git.porcelain import FileChange, GitStatus
from tools.git.program import CHECKOUT, GitProgram, open_repository
from tools.git.repository import find_entry, find_unfinished_operation
from tools.git.revisions import check_branch_name, describe_nearest_names, find_branch_tip, read_head
from tools.git.snapshot import read_head_ref

LOCAL = "refs/heads/"
STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")
HARMLESS_OPERATION = "bisect"
"""Git switches branches during it, and only warns."""
MAX_PATCH_CHARS = 20_000
FILTERS = r"^filter\..*\.(smudge|process)$"


class Switch(Struct, frozen=True):
    """What a checkout would do now."""

    name: str
    target: str
    """The commit that the branch leads to."""
    status: GitStatus
    start: str
    """What the files come from: the commit of the head, or the empty tree before the first commit."""
    changes: Sequence[FileChange]
    """What differs between the two."""

    @property
    def is_done(self) -> bool:
        return self.status.branch == self.name

    @property
    def protected(self) -> list[str]:
        return [path for path in self.paths if is_protected(path)]

    @property
    def paths(self) -> list[str]:
        return [change.path.decode("utf-8", "surrogateescape") for change in self.changes]

    @property
    def origin(self) -> str:
        """How git's reflog names what was checked out before."""
        return self.status.branch or self.status.commit or ""


async def checkout(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    switch = await _plan_switch(git, args)
    status, name = switch.status, to_one_line(switch.name)
    start = f"`{to_one_line(status.branch)}`" if status.branch else f"a detached HEAD at {(status.commit or '')[:12]}"
    if ctx.stands is not None and dict(await _build_facts(git, switch)) != dict(ctx.stands):
        raise _build_moved_refusal()
    if switch.is_done:
        return Done(f"Already on {start}; nothing was changed.", _build_checkout_data(switch))
    await _switch(git, switch)
    text = f"Switched from {start} ({(status.commit or 'no commit')[:12]}) to `{name}` ({switch.target[:12]}); "
    text += f"{format_count(len(switch.changes), 'file differs', 'files differ')}."
    if status.entries:
        text += f" Kept {format_count(len(status.entries), 'uncommitted change')}."
    return Done(text, _build_checkout_data(switch))


def _build_checkout_data(switch: Switch) -> dict[str, Any]:
    branch = switch.status.branch
    return {
        "from": {"branch": to_one_line(branch) if branch else None, "sha": switch.status.commit},
        "to": {"branch": to_one_line(switch.name), "sha": switch.target},
        "files": len(switch.changes),
    }


async def _switch(git: GitProgram, switch: Switch) -> None:
    writable = (git.repository.top, *(git.repository.to_workspace_path(path) for path in switch.protected))
    git_on_files = replace(git, writable_files=writable)
    # Git holds the lock of the index meanwhile. It writes only what differs between these two, and stops if one of
    # these files is not what the index says.
    await git_on_files.change(*CHECKOUT, switch.start, switch.target)
    try:
        if not await _is_as_planned(git, switch):
            raise _build_moved_refusal()
        # Git looks for this line in the reflog when asked for the branch before (`git switch -`).
        move = f"checkout: moving from {switch.origin} to {switch.name}"
        await git.change("symbolic-ref", "-m", move, "HEAD", LOCAL + switch.name)
    except Refusal:
        await git_on_files.change(*CHECKOUT, switch.target, switch.start)
        raise


async def _is_as_planned(git: GitProgram, switch: Switch) -> bool:
    branch = switch.status.branch
    return (
        await find_branch_tip(git, switch.name) == switch.target
        and await read_head(git) == switch.status.commit
        and await read_head_ref(git) == (LOCAL + branch if branch else "HEAD")
    )


async def read_checkout_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    """Read what the approval of a checkout shows."""
    git = await open_repository(ctx, args.get("repo_path", ""))
    return await _build_facts(git, await _plan_switch(git, args))


async def _build_facts(git: GitProgram, switch: Switch) -> Mapping[str, str]:
    """Build what an approval says. The two commits decide the content of every file that differs."""
    facts = {
        "checked out now": to_one_line(
            f"{switch.status.branch or 'no branch'} ({switch.status.commit or 'no commit'})"
        ),
        "the branch's commit": switch.target,
        "files that differ": "\n".join(format_changes(switch.changes)) or "none",
    }
    protected = [change for path, change in zip(switch.paths, switch.changes, strict=True) if is_protected(path)]
    if protected:
        facts["files that other programs obey"] = "\n".join(map(format_change, protected))
        facts |= await _read_patch(git, switch)
    filters = await git.test("config", "--null", "--get-regexp", FILTERS)
    lines = [to_one_line(line.replace(b"\n", b": ")) for line in filters.out.split(b"\0")[:-1]]
    return {**facts, **({"filters that may run": "\n".join(lines)} if lines else {})}


async def _read_patch(git: GitProgram, switch: Switch) -> Mapping[str, str]:
    """Read how the files differ that other programs obey, without those that may hold secrets."""
    paths = [path for path in switch.protected if not is_secret(path)]
    if not paths:
        return {}
    patch = await git.read("diff", *FORMAT, "--patch", switch.start, switch.target, "--", *paths)
    text = "\n".join(map(escape.to_content_line, patch.splitlines()))
    if len(text) <= MAX_PATCH_CHARS:
        return {"how they differ": text}
    return {f"the first {MAX_PATCH_CHARS:,} characters of how they differ": text[:MAX_PATCH_CHARS]}


async def _plan_switch(git: GitProgram, args: Arguments) -> Switch:
    """Look up what a checkout would do now; raise a `Refusal` if it could not be done."""
    name = await check_branch_name(git, args["branch_name"])
    target = await find_branch_tip(git, name)
    if target is None:
        raise await _build_missing_branch_refusal(git, name)
    status = porcelain.parse_status(await git.read(*STATUS))
    start = status.commit or (await git.read("hash-object", "-t", "tree", "/dev/null")).decode().strip()
    if status.branch == name:
        return Switch(name, target, status, start, ())
    await _raise_if_busy(git, name, status)
    if status.entries and not args.get("keep_changes"):
        raise Refusal(_build_dirty_problem(status))
    switch = Switch(name, target, status, start, await _list_changes(git, start, target))
    if switch.protected and not args.get("obeyed_files"):
        raise Refusal(_build_protected_problem(switch.protected))
    await _raise_if_lost(git, await to_thread.run_sync(_find_obstacles, git, switch))
    return switch


async def _raise_if_busy(git: GitProgram, name: str, status: GitStatus) -> None:
    """Raise a `Refusal` where `git switch` would."""
    operation = await to_thread.run_sync(find_unfinished_operation, git.ctx.files, git.repository)
    conflicts = [to_one_line(entry.path) for entry in status.entries if entry.conflict]
    if conflicts or operation not in (None, HARMLESS_OPERATION):
        message = f"A {operation} is in progress" if operation else f"{escape.format_names(conflicts)} is in conflict"
        way_out = "Finish it first: resolve the conflicts, stage the files with git_add, and commit with git_commit."
        raise Refusal.because(Code.WRONG_STATE, f"{message}; the branch was not changed.", way_out)
    elsewhere = (await git.read("for-each-ref", "--format=%(worktreepath)", LOCAL + name)).rstrip(b"\n")
    if elsewhere:
        message = f"`{to_one_line(name)}` is checked out in another worktree, `{to_one_line(elsewhere)}`."
        raise Refusal.because(Code.WRONG_STATE, message, "Work there, or create another branch with git_create_branch.")


async def _list_changes(git: GitProgram, start: str, target: str) -> list[FileChange]:
    """List the files that a checkout would write."""
    result = await git.read_result("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", start, target)
    if result.cut:
        message = "The branches differ in more files than menugate can check; nothing was changed."
        raise Refusal.because(Code.TOO_LARGE, message, "Ask the user to switch the branch.")
    return porcelain.parse_changes(result.out)


def _find_obstacles(git: GitProgram, switch: Switch) -> list[str]:
    """Find what is on disk where the checkout would put a new file. Raise a `Refusal` if git would write where no tool
    may, such as in menugate's own state."""
    kept = {entry.path for entry in switch.status.entries}
    found: dict[str, DirectoryEntry | None] = {}
    obstacles: list[str] = []
    for change, path in zip(switch.changes, switch.paths, strict=True):
        for part in _list_prefixes(path):
            if part not in found:
                found[part] = find_entry(git.ctx.files, git.repository.to_workspace_path(part))
            entry = found[part]
            if entry is None:
                break
            is_folder = entry.kind == "directory"
            # The folder of a submodule stays where it is.
            expected = is_folder and (part != path or change.is_submodule)
            if not expected:
                obstacles += [part] if change.status == "A" and change.path not in kept else []
                break
    return list(dict.fromkeys(obstacles))


def _list_prefixes(path: str) -> Iterable[str]:
    """List the folders on the way from the top, and the path itself."""
    names = path.split("/")
    return ("/".join(names[:count]) for count in range(1, len(names) + 1))


async def _raise_if_lost(git: GitProgram, obstacles: Sequence[str]) -> None:
    """Raise a `Refusal` if files would be lost that git does not track. Git itself overwrites ignored ones."""
    if not obstacles:
        return
    lost = (await git.read("ls-files", "--others", "-z", "--", *obstacles)).split(b"\0")[:-1]
    if lost:
        names = escape.format_names([to_one_line(path) for path in lost])
        raise Refusal.because(
            Code.WRONG_STATE,
            f"The branch has files where git does not track {names}, which would be lost; nothing was changed.",
            "Move them away first, or ask the user to switch the branch.",
        )


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


def _build_moved_refusal() -> Refusal:
    message = "The branch or what is checked out changed meanwhile; nothing was changed."
    return Refusal.because(Code.STALE, message, "Check git_status and git_branch_list, then call again.")


async def _build_missing_branch_refusal(git: GitProgram, name: str) -> Refusal:
    suggestion = await describe_nearest_names(git, name)
    return Refusal.because(
        Code.NOT_FOUND,
        f"There is no local branch `{to_one_line(name)}` in {git.repository.name}.{suggestion}",
        "git_checkout switches to local branches only. git_create_branch creates one; its `base_branch` may be a "
        "commit, a tag or a remote branch.",
    )
