"""Which repository is meant, and does all of it lie in the workspace?

Git would find a repository by itself, and follow what it finds to wherever that leads. So it is found here, through the
jail, and git is told where it is: it then asks neither who owns the folder nor what `core.worktree` says.
"""

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from mcp_server.model.files import DirectoryEntry, Files
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line

MOST_POINTER = 4096
MOST_ALTERNATES = 20
DEEPEST_ALTERNATE = 5
PARTS = """
HEAD index config config.worktree commondir packed-refs shallow hooks info logs refs refs/heads objects objects/info
objects/pack modules worktrees
"""
"""What git opens by name in its folder; none of it may be a link to elsewhere."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Places below the workspace, `.` for the workspace itself."""

    top: str
    """The folder whose files it keeps."""
    folder: str
    """Where git keeps what belongs to this folder alone: its head and its index."""
    common: str
    """Where git keeps everything else; the same, but for a linked worktree."""
    asked: str
    """The folder that was named, in it or the same."""

    @property
    def name(self) -> str:
        return "the workspace" if self.top == "." else f"`{to_one_line(self.top)}`"

    def to_workspace_path(self, path: str) -> str:
        """A path in the repository, as the workspace has it."""
        return path if self.top == "." else f"{self.top}/{path}"


def find_repository(files: Files, path: str) -> Repository:
    """The repository that this folder belongs to; `Refusal` where there is none, or not all of it is in here."""
    start = _require_folder(files, path)
    for top in _walk_upwards(start):
        if folder := _find_git_folder(files, top):
            common = _read_pointer(files, folder, f"{folder}/commondir", "") or folder
            for one in dict.fromkeys((folder, common)):
                _raise_if_parts_outside(files, one)
            _raise_if_objects_outside(files, f"{common}/objects", DEEPEST_ALTERNATE)
            return Repository(top, folder, common, start)
    raise Refusal(
        Problem(
            Code.NOT_FOUND,
            f"There is no git repository at `{to_one_line(path)}`, nor above it inside the workspace.",
            "Give the folder of a repository as `repo_path`. A repository that begins above the workspace is served "
            "by starting menugate with that folder as its workspace.",
        )
    )


def _require_folder(files: Files, path: str) -> str:
    entry = files.get_info(path)
    if entry.kind == "link":
        raise _build_refusal(f"`{to_one_line(path)}` is a link.", "Give the folder's own path as `repo_path`.")
    if entry.kind != "directory":
        raise _build_refusal(f"`{to_one_line(path)}` is a file.", "Give the folder of the repository as `repo_path`.")
    return entry.path


def _walk_upwards(path: str) -> Iterator[str]:
    while path not in ("", "."):
        yield path
        path = posixpath.dirname(path)
    yield "."


def _find_git_folder(files: Files, top: str) -> str | None:
    """Git's own folder for the files in this one, None where they have none."""
    here = ".git" if top == "." else f"{top}/.git"
    entry = find_entry(files, here)
    if entry is None:
        return None
    if entry.kind == "link":
        raise _build_refusal(
            f"`{to_one_line(here)}` is a link.", "Only a repository whose `.git` is really there is opened."
        )
    folder = here if entry.kind == "directory" else _read_pointer(files, top, here, "gitdir: ")
    # As git has it: a folder of that name without a head is no repository, and the search goes on above.
    return folder if folder and find_entry(files, f"{folder}/HEAD") else None


def _read_pointer(files: Files, base: str, pointer: str, sign: str) -> str | None:
    """The folder that a small file of git's names, None where there is no such file."""
    if find_entry(files, pointer) is None:
        return None
    text = files.read(pointer, MOST_POINTER).data.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if not text.startswith(sign) or text == sign:
        raise _build_refusal(f"`{to_one_line(pointer)}` does not say where its repository is.", "")
    return _resolve_folder(files, base, text.removeprefix(sign), pointer)


def _resolve_folder(files: Files, base: str, target: str, told_by: str) -> str:
    """A folder named inside the repository, which has to lie in the workspace as well."""
    place = target if target.startswith("/") else posixpath.normpath(f"{base}/{target}")
    try:
        entry = files.get_info(place)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            raise _build_refusal(
                f"`{to_one_line(told_by)}` names `{to_one_line(target)}`, which is not there.", ""
            ) from refusal
        raise _build_outside_refusal(told_by, target) from refusal
    if entry.kind != "directory":
        raise _build_refusal(f"`{to_one_line(told_by)}` names `{to_one_line(target)}`, which is no folder.", "")
    return entry.path


def _raise_if_parts_outside(files: Files, folder: str) -> None:
    for part in PARTS.split():
        path = f"{folder}/{part}"
        entry = find_entry(files, path)
        if entry is not None and entry.kind == "link":
            _raise_if_link_outside(files, path)


def _raise_if_link_outside(files: Files, path: str) -> None:
    """A link is followed by the jail, which says no where it leads out."""
    try:
        files.read(path, 0)
    except Refusal as refusal:
        with suppress(Refusal):
            files.list_folder(path)
            return
        raise _build_outside_refusal(path, "") from refusal


def _raise_if_objects_outside(files: Files, objects: str, depth: int) -> None:
    """A repository may borrow the history of others, which must not be from outside."""
    listed = f"{objects}/info/alternates"
    if find_entry(files, listed) is None:
        return
    found = files.read(listed, MOST_POINTER)
    names = [name for name in found.data.decode("utf-8", "surrogateescape").split("\n") if name and name[0] != "#"]
    if not found.whole or len(names) > MOST_ALTERNATES or depth == 0 or any(name[0] == '"' for name in names):
        raise _build_refusal(f"`{to_one_line(listed)}` names more repositories than are followed.", "")
    for name in names:
        _raise_if_objects_outside(files, _resolve_folder(files, objects, name, listed), depth - 1)


def find_entry(files: Files, path: str) -> DirectoryEntry | None:
    try:
        return files.get_info(path)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return None
        raise


def _build_outside_refusal(told_by: str, target: str) -> Refusal:
    to = f" to `{to_one_line(target)}`" if target else ""
    return _build_refusal(
        f"`{to_one_line(told_by)}` leads{to} outside the workspace, so a part of this repository lies there.",
        "Only a repository that lies in the workspace as a whole is opened: have the person serve the folder that "
        "holds all of it.",
    )


def _build_refusal(message: str, way_out: str) -> Refusal:
    return Refusal(Problem(Code.PATH_REFUSED, message, way_out))


def find_unfinished_operation(files: Files, repository: Repository) -> str | None:
    """What was begun here and is not finished: a merge, a rebase, ..."""
    for name, word in UNFINISHED.items():
        if find_entry(files, f"{repository.folder}/{name}"):
            return word
    return None


UNFINISHED = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


COMMITTING = """
pre-commit prepare-commit-msg commit-msg post-commit reference-transaction post-index-change
"""
"""The hooks that a commit runs."""


def find_ready_hooks(files: Files, folder: str) -> list[str]:
    """Those of a commit that lie ready in this folder, which git would run by itself. `Refusal` where it is outside."""
    try:
        entries = files.list_folder(folder)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return []
        raise
    names = {posixpath.basename(entry.path): entry for entry in entries}
    return [name for name in COMMITTING.split() if name in names and _is_ready_hook(files, names[name])]


def _is_ready_hook(files: Files, entry: DirectoryEntry) -> bool:
    if entry.kind != "link":
        return entry.kind == "file" and bool(entry.mode & 0o111)
    try:
        return bool(files.read(entry.path, 0).mode & 0o111)
    except Refusal as refusal:
        # What a link leads to outside is not looked at, and may well be one.
        return refusal.problem.code is not Code.NOT_FOUND
