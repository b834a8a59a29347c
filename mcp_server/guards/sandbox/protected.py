"""Which places of the workspace does a child not get as they are? Those that other programs obey, and the secrets.

Found by walking, because a sandbox is built from paths that exist. What a folder held is remembered for as long as the
folder says that it did not change, so that a walk before and after every command is one question to each folder.
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

from mcp_server.model.files import INSTALLED, is_protected, is_secret
from mcp_server.model.results import Code, Problem, Refusal

FRESH, MOST_FRESH = 20.0, 5.0
"""So many times as long as it took a walk is believed, and at most so many seconds: looking before every command never
takes more than a twentieth of the time."""
COARSE_NS = 50_000_000
"""A folder that was changed so recently may be changed again and look the same."""
MOST_FOLDERS = 50_000
MOST_POINTER = 4096
MOST_PLACES = 400
"""Building a sandbox takes time with the square of these."""
GIT = ".git"
OBEYED_BY_GIT = ("hooks", "config", "config.worktree", "commondir")
"""Below `.git`: what decides which programs git runs, and where it looks for that."""
OTHERS_IN_GIT = ("modules", "worktrees")
DEEPEST_MODULE = 8
"""The same of submodules and linked worktrees, each a repository of its own."""


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """Paths below the workspace."""

    guarded: tuple[str, ...] = ()
    """Read, and not changed."""
    repositories: tuple[str, ...] = ()
    """Folders `.git`, which are guarded as well, or only in part for who may commit."""
    inner: tuple[str, ...] = ()
    """What is a repository for itself inside of such a folder: of a submodule, of a linked worktree."""
    secret: tuple[str, ...] = ()
    """Not even read."""
    overfull: bool = False
    """There are more than a sandbox can hold back."""

    def list_obeyed_paths(self) -> Iterator[str]:
        """Everything there is that other programs obey; of repositories what git does."""
        yield from self.guarded
        for one in (*self.repositories, *self.inner):
            yield one
            yield from (f"{one}/{name}" for name in OBEYED_BY_GIT)


@dataclass(frozen=True, slots=True)
class ProtectedFolder:
    """What there was of that in one folder, and the folders to look into."""

    stamp: tuple[int, int, int]
    settled: bool
    """It had not just been changed when it was listed."""
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
    """Is it a secret, is it protected? The same names come again and again."""
    return is_secret(name), is_protected(name)


def _sort_entries(
    root: Path, folder: str, entries: list["os.DirEntry[str]"], private: frozenset[str]
) -> tuple[list[str], ...]:
    """`private` are our own places: they are hidden whole, and not looked into."""
    guarded: list[str] = []
    repositories: list[str] = []
    hidden: list[str] = []
    folders: list[str] = []
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name == GIT and not entry.is_dir(follow_symlinks=False):
            repositories.extend(find_pointed_repository(root, Path(entry.path)))
        if path in private or entry.is_symlink():
            # What a link leads to is found where it is; the link itself cannot be held by a mount.
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
    """`known` is what was found by the walk before, and is what was found by this one afterwards."""
    found: dict[str, ProtectedFolder] = {}
    guarded: list[str] = []
    repositories: list[str] = []
    hidden: list[str] = []
    # What lies high up first: that is where people keep theirs, however many folders somebody else brings along.
    todo = deque([""])
    while todo and len(found) < MOST_FOLDERS:
        path = todo.popleft()
        one = scan_folder(root, path, private, known.get(path))
        if one is not None:
            found[path] = one
            guarded += one.guarded
            repositories += one.repositories
            hidden += one.secret
            todo += one.folders
    known.clear()
    known.update(found)
    repositories = list(dict.fromkeys(repositories))
    inner = [inside for one in repositories for inside in find_inner_repositories(root, one)]
    hidden = hide_whole_folders(hidden, len(guarded) + len(hidden) - MOST_PLACES)
    overfull = len(guarded) + len(hidden) > MOST_PLACES
    return ProtectedPaths(
        *(tuple(sorted(paths)) for paths in (guarded, repositories, inner, hidden)), overfull=overfull
    )


def hide_whole_folders(hidden: list[str], too_many: int) -> list[str]:
    """With so many less of them, by hiding the folders whole in which there are most."""
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
    """The repository that is not in the folder itself, but where a link or the words of a file say; of a linked
    worktree the one it belongs to. What lies in another one's `.git` is found there."""
    try:
        target = git.resolve() if git.is_symlink() else (git.parent / _read_pointer(git, "gitdir: ")).resolve()
        with suppress(FileNotFoundError):
            target = (target / _read_pointer(target / "commondir")).resolve()
        inside = str(target.relative_to(root))
        if GIT not in inside.split("/") and inside != "." and (target / "HEAD").exists():
            yield inside
    except (OSError, ValueError, RuntimeError):  # it says nothing, or leads elsewhere
        return


def _read_pointer(file: Path, mark: str = "") -> str:
    """What stands behind the mark in such a file, which is never waited for."""
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        said = os.fsdecode(os.read(opened, MOST_POINTER)).rstrip("\n")
    finally:
        os.close(opened)
    if not said.startswith(mark):
        raise ValueError(file)
    return said.removeprefix(mark)


def find_inner_repositories(root: Path, repository: str, depth: int = 0) -> Iterator[str]:
    """A submodule's name may have several parts, and a submodule submodules of its own."""
    for kind in OTHERS_IN_GIT:
        yield from _find_repositories_in(root, f"{repository}/{kind}", depth)


def _find_repositories_in(root: Path, folder: str, depth: int) -> Iterator[str]:
    try:
        names = [entry.name for entry in os.scandir(root / folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for name in names if depth < DEEPEST_MODULE else ():
        path = f"{folder}/{name}"
        if (root / path / "HEAD").exists():
            yield path
            yield from find_inner_repositories(root, path, depth + 1)
        else:
            yield from _find_repositories_in(root, path, depth + 1)


@dataclass
class PathWatch:
    """The places as they were a moment ago."""

    root: Path
    private: frozenset[str]
    _known: ProtectedPaths = field(default_factory=ProtectedPaths)
    _folders: dict[str, ProtectedFolder] = field(default_factory=dict[str, ProtectedFolder])
    _until: float = 0.0
    """Up to when that is believed."""
    _looked: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    async def get_protected_paths(self) -> ProtectedPaths:
        if time.monotonic() > self._until:
            await anyio.to_thread.run_sync(self._scan_workspace, time.monotonic())
        if self._known.overfull:
            raise Refusal(
                Problem(
                    Code.TOO_LARGE,
                    f"More than {MOST_PLACES} places of this workspace usually hold secrets or are obeyed by other "
                    "programs, and no sandbox holds so many back; nothing ran.",
                    "Have the person serve a smaller folder, or put files such as keys for tests into one folder.",
                )
            )
        return self._known

    async def scan_protected_paths(self) -> ProtectedPaths:
        """As they are at this moment."""
        await anyio.to_thread.run_sync(self._scan_workspace, time.monotonic())
        return self._known

    def _scan_workspace(self, asked: float) -> None:
        with self._lock:
            if asked < self._looked:  # somebody else has looked since
                return
            begun = time.monotonic()
            self._known = find_protected_paths(self.root, self.private, self._folders)
            self._looked = begun
            self._until = begun + min((time.monotonic() - begun) * FRESH, MOST_FRESH)
