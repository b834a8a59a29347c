"""Which repository is meant, and does all of it lie in the workspace?

Left to itself, git would look for a repository and follow links and pointers out of the workspace. So we look for it,
through the jail, and pass its place to git, which then checks neither who owns the folder nor `core.worktree`.
"""

import posixpath
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from mcp_server.model.files import DirectoryEntry, Files
from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import to_one_line

MAX_POINTER_BYTES = 4096
MAX_ALTERNATES = 20
MAX_ALTERNATE_DEPTH = 5
GIT_FILES = """
HEAD index config config.worktree commondir packed-refs shallow hooks info logs refs refs/heads objects objects/info
objects/pack modules worktrees
"""
"""What git opens by name in its folder; none of it may be a link out of the workspace."""
UNFINISHED = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
COMMIT_HOOKS = """
pre-commit prepare-commit-msg commit-msg post-commit reference-transaction post-index-change
"""


class Repository(Struct, frozen=True):
    """Where a repository lies. Paths are relative to the workspace, `.` for the workspace itself."""

    top: str
    """The top folder of the worktree."""
    folder: str
    """Git's own folder for this worktree, with its head and its index."""
    common: str
    """Git's own folder for everything else; the same as `folder`, except in a linked worktree."""
    start: str
    """The folder that the caller named, `top` or one below it."""

    @property
    def name(self) -> str:
        return "the workspace" if self.top == "." else f"`{to_one_line(self.top)}`"

    def to_workspace_path(self, path: str) -> str:
        """Convert a path relative to the repository to one relative to the workspace."""
        return path if self.top == "." else f"{self.top}/{path}"


def find_repository(files: Files, path: str) -> Repository:
    """Find the repository of this folder; raise a `Refusal` if there is none, or part of it lies outside."""
    start = _require_folder(files, path)
    for top in _walk_upwards(start):
        if folder := _find_git_folder(files, top):
            common = _read_pointer(files, folder, f"{folder}/commondir", "") or folder
            for git_folder in dict.fromkeys((folder, common)):
                _raise_if_links_outside(files, git_folder)
            _raise_if_objects_outside(files, f"{common}/objects", MAX_ALTERNATE_DEPTH)
            return Repository(top, folder, common, start)
    raise Refusal.because(
        Code.NOT_FOUND,
        f"There is no git repository at `{to_one_line(path)}`, nor above it inside the workspace.",
        "Pass the folder of a repository as `repo_path`. If the repository begins above the workspace, ask the "
        "user to start menugate in that folder.",
    )


def _require_folder(files: Files, path: str) -> str:
    entry = files.get_info(path)
    if entry.kind == "link":
        raise _build_refusal(f"`{to_one_line(path)}` is a link.", "Pass the folder that it leads to as `repo_path`.")
    if entry.kind != "directory":
        raise _build_refusal(f"`{to_one_line(path)}` is a file.", "Pass the folder of the repository as `repo_path`.")
    return entry.path


def _walk_upwards(path: str) -> Iterator[str]:
    while path not in ("", "."):
        yield path
        path = posixpath.dirname(path)
    yield "."


def _find_git_folder(files: Files, top: str) -> str | None:
    """Return git's own folder for the worktree with this top folder; None if it is no worktree."""
    path = ".git" if top == "." else f"{top}/.git"
    entry = find_entry(files, path)
    if entry is None:
        return None
    if entry.kind == "link":
        raise _build_refusal(
            f"`{to_one_line(path)}` is a link.", "Choose a repository whose `.git` is a folder or a file."
        )
    folder = path if entry.kind == "directory" else _read_pointer(files, top, path, "gitdir: ")
    # Like git, we take a `.git` without a HEAD for no repository and look further up.
    return folder if folder and find_entry(files, f"{folder}/HEAD") else None


def _read_pointer(files: Files, base: str, pointer: str, sign: str) -> str | None:
    """Return the folder that git's pointer file names; None if there is no such file."""
    if find_entry(files, pointer) is None:
        return None
    text = files.read(pointer, MAX_POINTER_BYTES).data.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if not text.startswith(sign) or text == sign:
        raise _build_refusal(f"`{to_one_line(pointer)}` does not say where its repository is.", "")
    return _resolve_folder(files, base, text.removeprefix(sign), pointer)


def _resolve_folder(files: Files, base: str, target: str, pointer: str) -> str:
    """Resolve a folder that `pointer` names; it must lie in the workspace as well."""
    path = target if target.startswith("/") else posixpath.normpath(f"{base}/{target}")
    try:
        entry = files.get_info(path)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            raise _build_refusal(
                f"`{to_one_line(pointer)}` names `{to_one_line(target)}`, which does not exist.", ""
            ) from refusal
        raise _build_outside_refusal(pointer, target) from refusal
    if entry.kind != "directory":
        raise _build_refusal(f"`{to_one_line(pointer)}` names `{to_one_line(target)}`, which is not a folder.", "")
    return entry.path


def _raise_if_links_outside(files: Files, folder: str) -> None:
    for name in GIT_FILES.split():
        path = f"{folder}/{name}"
        entry = find_entry(files, path)
        if entry is not None and entry.kind == "link":
            _raise_if_link_outside(files, path)


def _raise_if_link_outside(files: Files, path: str) -> None:
    """Let the jail follow the link, as a file or as a folder; it refuses if the link leads out."""
    try:
        files.read(path, 0)
    except Refusal as refusal:
        with suppress(Refusal):
            files.list_folder(path)
            return
        raise _build_outside_refusal(path, "") from refusal


def _raise_if_objects_outside(files: Files, objects: str, depth: int) -> None:
    """Check the repositories that this one borrows objects from, and those that they borrow from."""
    path = f"{objects}/info/alternates"
    if find_entry(files, path) is None:
        return
    alternates = files.read(path, MAX_POINTER_BYTES)
    lines = alternates.data.decode("utf-8", "surrogateescape").split("\n")
    names = [line for line in lines if line and line[0] != "#"]
    if not alternates.whole or len(names) > MAX_ALTERNATES or depth == 0 or any(name[0] == '"' for name in names):
        raise _build_refusal(f"`{to_one_line(path)}` names more repositories than menugate follows.", "")
    for name in names:
        _raise_if_objects_outside(files, _resolve_folder(files, objects, name, path), depth - 1)


def find_entry(files: Files, path: str) -> DirectoryEntry | None:
    try:
        return files.get_info(path)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return None
        raise


def _build_outside_refusal(pointer: str, target: str) -> Refusal:
    to = f" to `{to_one_line(target)}`" if target else ""
    return _build_refusal(
        f"`{to_one_line(pointer)}` leads{to} outside the workspace, so part of this repository lies there.",
        "The whole repository must lie in the workspace: ask the user to serve the folder that holds all of it.",
    )


def _build_refusal(message: str, way_out: str) -> Refusal:
    return Refusal.because(Code.PATH_REFUSED, message, way_out)


def find_unfinished_operation(files: Files, repository: Repository) -> str | None:
    """Return the operation that is under way in this worktree, such as `merge`."""
    for name, word in UNFINISHED.items():
        if find_entry(files, f"{repository.folder}/{name}"):
            return word
    return None


def find_commit_hooks(files: Files, folder: str) -> list[str]:
    """Name the hooks in this folder that a commit would run; raise a `Refusal` if it lies outside the workspace."""
    try:
        entries = files.list_folder(folder)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return []
        raise
    names = {posixpath.basename(entry.path): entry for entry in entries}
    return [name for name in COMMIT_HOOKS.split() if name in names and _is_executable(files, names[name])]


def _is_executable(files: Files, entry: DirectoryEntry) -> bool:
    if entry.kind != "link":
        return entry.kind == "file" and bool(entry.mode & 0o111)
    try:
        return bool(files.read(entry.path, 0).mode & 0o111)
    except Refusal as refusal:
        # A link out of the workspace: we cannot look, so we assume a hook.
        return refusal.problem.code is not Code.NOT_FOUND
