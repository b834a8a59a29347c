"""Does the repository name programs that no option of git's keeps from running?

Looked for in the words of its configuration files, wherever they stand: what merely looks like one counts as one.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from mcp_server.model.files import Files
from mcp_server.model.results import Code, Problem, Refusal
from tools.git.escape import inline
from tools.git.repository import Repository

PROGRAMS = re.compile(rb"\[\s*(filter|include|includeif)\b", re.IGNORECASE)
"""Filters, and what may hold some."""
MOST_CONFIG = 1 << 20
FILES = ("config", "config.worktree")
DEEPEST = 8


def harmless(files: Files, repository: Repository) -> None:
    """`Refusal` where git would run a program of the repository's on the content of files, and nothing holds it."""
    for path in _configurations(files, repository):
        if found := PROGRAMS.search(_read(files, path)):
            raise Refusal(
                Problem(
                    Code.UNSAFE_REPOSITORY,
                    f"`{inline(path)}` has a section `{inline(found[1])}`, by which git may run programs of the "
                    "repository's choosing, and no sandbox on this machine would hold them.",
                    "Have the person install bubblewrap, or take that section out of the file.",
                )
            )


def _configurations(files: Files, repository: Repository) -> Iterator[str]:
    for folder in dict.fromkeys((repository.folder, repository.common)):
        yield from (f"{folder}/{name}" for name in FILES)
    yield from _of_submodules(files, f"{repository.common}/modules", DEEPEST)


def _of_submodules(files: Files, folder: str, depth: int) -> Iterator[str]:
    with suppress(Refusal):
        for entry in files.entries(folder) if depth else ():
            if entry.kind == "directory":
                yield from (f"{entry.path}/{name}" for name in FILES)
                inner = _there(files, f"{entry.path}/HEAD")
                yield from _of_submodules(files, f"{entry.path}/modules" if inner else entry.path, depth - 1)


def _there(files: Files, path: str) -> bool:
    with suppress(Refusal):
        return bool(files.info(path))
    return False


def _read(files: Files, path: str) -> bytes:
    try:
        return files.read(path, MOST_CONFIG).data
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return b""
        raise
