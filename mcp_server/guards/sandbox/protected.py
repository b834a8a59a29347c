"""Which places of the workspace are protected from a child? Those that other programs obey, and secrets.

Found by walking, because a sandbox is built from paths that exist. What a folder held is remembered until the folder's
own stamp changes, so a walk before and after every command costs one `stat` per folder.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock

import anyio.to_thread
from msgspec import Struct

from mcp_server.model.files import INSTALLED, is_protected, is_secret
from mcp_server.model.results import Code, Problem, Refusal

FRESH, MAX_FRESH_SECONDS = 20.0, 5.0
"""A walk's result is trusted for `FRESH` times as long as the walk took, up to the maximum, so walking before every
command takes at most a twentieth of the time."""
COARSE_NS = 50_000_000
"""A folder changed this recently may change again and still show the same stamp."""
MAX_FOLDERS = 50_000
MAX_POINTER_BYTES = 4096
MAX_PLACES = 400
"""The time to build a sandbox grows with the square of this."""
GIT = ".git"
OBEYED_BY_GIT = ("hooks", "config", "config.worktree", "commondir")
"""Below `.git`: decides which programs git runs, and where it looks for this."""
OTHERS_IN_GIT = ("modules", "worktrees")
MAX_MODULE_DEPTH = 8
"""How deep submodules and linked worktrees may nest; each is a repository of its own."""


class ProtectedPaths(Struct, frozen=True):
    """Paths relative to the workspace."""

    guarded: tuple[str, ...] = ()
    """Readable, but not changed."""
    repositories: tuple[str, ...] = ()
    """`.git` folders: guarded as well, or only in part if the child may commit."""
    inner: tuple[str, ...] = ()
    """Repositories inside such a folder: those of submodules and linked worktrees."""
    secret: tuple[str, ...] = ()
    """Not even readable."""
    overfull: bool = False
    """True if there are more than a sandbox can protect."""

    def list_obeyed_paths(self) -> Iterator[str]:
        """Yield everything that other programs obey; of repositories also what git obeys in them."""
        yield from self.guarded
        for repository in (*self.repositories, *self.inner):
            yield repository
            yield from (f"{repository}/{name}" for name in OBEYED_BY_GIT)


class ProtectedFolder(Struct, frozen=True):
    """The protected entries of one folder, and the folders to walk next."""

    stamp: tuple[int, int, int]
    settled: bool
    """True if it had not just been changed when it was listed."""
    guarded: tuple[str, ...]
    repositories: tuple[str, ...]
    secret: tuple[str, ...]
    folders: tuple[str, ...]


def scan_folder(
    root: Path, folder: str, private: frozenset[str], known: ProtectedFolder | None
) -> ProtectedFolder | None:
    try:
        found = os.stat(f"{root}/{folder}", follow_symlinks=False)  # noqa: PTH116  # asked of every folder each time
        stamp = (found.st_ctime_ns, found.st_ino, found.st_dev)
        if known is not None and known.settled and known.stamp == stamp:
            return known
        settled = time.time_ns() - found.st_ctime_ns > COARSE_NS
        with os.scandir(root / folder) as entries:
            parts = _sort_entries(root, folder, list(entries), private)
    except OSError:
        return None
    return ProtectedFolder(stamp, settled, *map(tuple, parts))


@lru_cache(maxsize=1 << 16)
def classify_name(name: str) -> tuple[bool, bool]:
    """Return whether it is a secret, and whether it is protected. Cached, because the same names recur."""
    return is_secret(name), is_protected(name)


def _sort_entries(
    root: Path, folder: str, entries: list["os.DirEntry[str]"], private: frozenset[str]
) -> tuple[list[str], ...]:
    """`private`: menugate's own places, which are hidden as a whole and not walked."""
    guarded: list[str] = []
    repositories: list[str] = []
    hidden: list[str] = []
    folders: list[str] = []
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name == GIT and not entry.is_dir(follow_symlinks=False):
            repositories.extend(find_pointed_repository(root, Path(entry.path)))
        if path in private or entry.is_symlink():
            # A link's target is found where it lies; a mount cannot protect the link itself.
            continue
        hides, guards = classify_name(entry.name)
        if hides:
            hidden.append(path)
        elif entry.name == GIT and entry.is_dir():
            repositories.append(path)
        elif guards:
            guarded.append(path)
        elif entry.is_dir() and entry.name not in INSTALLED:
            folders.append(path)
    return guarded, repositories, hidden, folders


def find_protected_paths(root: Path, private: frozenset[str], known: dict[str, ProtectedFolder]) -> ProtectedPaths:
    """Walk the workspace. `known` holds what the previous walk found, and is updated with what this one finds."""
    found: dict[str, ProtectedFolder] = {}
    guarded: list[str] = []
    repositories: list[str] = []
    hidden: list[str] = []
    # Breadth first: your own files are near the top, however many folders tools create further down.
    todo = deque([""])
    while todo and len(found) < MAX_FOLDERS:
        path = todo.popleft()
        folder = scan_folder(root, path, private, known.get(path))
        if folder is not None:
            found[path] = folder
            guarded += folder.guarded
            repositories += folder.repositories
            hidden += folder.secret
            todo += folder.folders
    known.clear()
    known.update(found)
    repositories = list(dict.fromkeys(repositories))
    inner = [inside for one in repositories for inside in find_inner_repositories(root, one)]
    if (too_many := len(guarded) + len(hidden) - MAX_PLACES) > 0:
        hidden = hide_whole_folders(hidden, too_many)
    overfull = len(guarded) + len(hidden) > MAX_PLACES
    return ProtectedPaths(
        *(tuple(sorted(paths)) for paths in (guarded, repositories, inner, hidden)), overfull=overfull
    )


def hide_whole_folders(hidden: list[str], too_many: int) -> list[str]:
    """Remove `too_many` paths by hiding whole the folders that hold the most of them."""
    by_folder: dict[str, int] = Counter(one.rpartition("/")[0] for one in hidden)
    by_folder.pop("", None)
    whole: set[str] = set()
    for folder, number in sorted(by_folder.items(), key=lambda one: (-one[1], one[0])):
        if too_many <= 0:
            break
        whole.add(folder)
        too_many -= number - 1
    return [*(one for one in hidden if one.rpartition("/")[0] not in whole), *whole]


def find_pointed_repository(root: Path, git: Path) -> Iterator[str]:
    """Yield the repository that a link or a `.git` file points to; of a linked worktree, the one it belongs to. What
    lies in another repository's `.git` is left out: it is found there."""
    try:
        target = git.resolve() if git.is_symlink() else (git.parent / _read_pointer(git, "gitdir: ")).resolve()
        with suppress(FileNotFoundError):
            target = (target / _read_pointer(target / "commondir")).resolve()
        inside = str(target.relative_to(root))
        if GIT not in inside.split("/") and inside != "." and (target / "HEAD").exists():
            yield inside
    except (OSError, ValueError, RuntimeError):  # it points nowhere, or elsewhere
        return


def _read_pointer(file: Path, mark: str = "") -> str:
    """Return what follows the mark in such a file, without ever blocking on it."""
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        text = os.fsdecode(os.read(opened, MAX_POINTER_BYTES)).rstrip("\n")
    finally:
        os.close(opened)
    if not text.startswith(mark):
        raise ValueError(file)
    return text.removeprefix(mark)


def find_inner_repositories(root: Path, repository: str, depth: int = 0) -> Iterator[str]:
    """Yield nested repositories. A submodule's name may have several parts, and a submodule may have submodules."""
    for kind in OTHERS_IN_GIT:
        yield from _find_repositories_in(root, f"{repository}/{kind}", depth)


def _find_repositories_in(root: Path, folder: str, depth: int) -> Iterator[str]:
    try:
        names = [entry.name for entry in os.scandir(root / folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for name in names if depth < MAX_MODULE_DEPTH else ():
        path = f"{folder}/{name}"
        if (root / path / "HEAD").exists():
            yield path
            yield from find_inner_repositories(root, path, depth + 1)
        else:
            yield from _find_repositories_in(root, path, depth + 1)


@dataclass
class PathWatch:
    """Caches the protected paths for a short time."""

    root: Path
    private: frozenset[str]
    _known: ProtectedPaths = field(default_factory=ProtectedPaths)
    _folders: dict[str, ProtectedFolder] = field(default_factory=dict[str, ProtectedFolder])
    _until: float = 0.0
    """Until when they are trusted."""
    _looked: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    async def get_protected_paths(self) -> ProtectedPaths:
        if time.monotonic() > self._until:
            await anyio.to_thread.run_sync(self._scan_workspace, time.monotonic())
        if self._known.overfull:
            raise Refusal(
                Problem(
                    Code.TOO_LARGE,
                    f"More than {MAX_PLACES} files or folders in this workspace usually hold secrets or decide what "
                    "other programs run; a sandbox cannot protect that many, so nothing ran.",
                    "Ask the user to serve a smaller folder, or to move files such as test keys into one folder.",
                )
            )
        return self._known

    async def scan_protected_paths(self) -> ProtectedPaths:
        """Scan again, whatever is cached."""
        await anyio.to_thread.run_sync(self._scan_workspace, time.monotonic())
        return self._known

    def _scan_workspace(self, asked: float) -> None:
        with self._lock:
            if asked < self._looked:  # another thread has scanned since
                return
            begun = time.monotonic()
            self._known = find_protected_paths(self.root, self.private, self._folders)
            self._looked = begun
            self._until = begun + min((time.monotonic() - begun) * FRESH, MAX_FRESH_SECONDS)
