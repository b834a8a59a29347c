"""Which places of the workspace does a child not get as they are? Those that other programs obey, and the secrets.

Found by walking, because a sandbox is built from paths that exist. The walk is remembered for a moment: a command that
follows another at once does not wait for it again.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import anyio.to_thread

from mcp_server.model.ports.files import protected, secret

FRESH = 5.0
"""Seconds for which a walk is believed without looking again at all."""
MOST_ENTRIES = 200_000
MOST_PLACES = 400
GIT = ".git"
OBEYED_BY_GIT = ("hooks", "config", "config.worktree", "commondir")
"""Below `.git`: what decides which programs git runs, and where it looks for that."""
OTHERS_IN_GIT = ("modules", "worktrees")
"""The same of submodules and linked worktrees, each a repository of its own."""
INSTALLED = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox", "__pycache__"})
"""Folders of other people's packages: what looks like a secret there came with them, and there is too much of it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths below the workspace."""

    guarded: tuple[str, ...] = ()
    """Read, and not changed."""
    repositories: tuple[str, ...] = ()
    """Folders `.git`, which are guarded as well, or only in part for who may commit."""
    secret: tuple[str, ...] = ()
    """Not even read."""


def walk(root: Path, private: frozenset[str]) -> Places:
    """`private` are our own places below the root: they are hidden whole, and not looked into."""
    guarded: list[str] = []
    repositories: list[str] = []
    hidden: list[str] = []
    todo = [""]
    for _ in range(MOST_ENTRIES):
        if not todo or len(guarded) + len(hidden) > MOST_PLACES:
            break
        folder = todo.pop()
        for entry in _entries(root / folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in private or entry.is_symlink():
                # What a link leads to is found where it is; the link itself cannot be held by a mount.
                continue
            if secret(entry.name):
                hidden.append(path)
            elif entry.name == GIT and entry.is_dir():
                repositories.append(path)
            elif protected(entry.name):
                guarded.append(path)
            elif entry.is_dir() and entry.name not in INSTALLED:
                todo.append(path)
    return Places(tuple(sorted(guarded)), tuple(sorted(repositories)), tuple(sorted(hidden)))


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


@dataclass
class Watch:
    """The places as they were a moment ago."""

    root: Path
    private: frozenset[str]
    _known: Places = field(default_factory=Places)
    _at: float = -FRESH
    _lock: Lock = field(default_factory=Lock)

    async def places(self) -> Places:
        if time.monotonic() - self._at > FRESH:
            await anyio.to_thread.run_sync(self._look)
        return self._known

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._at > FRESH:
                self._known = walk(self.root, self.private)
                self._at = time.monotonic()
