"""Which files are there that a call may run? Looks at what its words could name, from every folder that one names."""

import os
import posixpath
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

from mcp_server.guards.jail import Jail
from mcp_server.model.results import Refusal
from mcp_server.model.tools import RunFiles

MOST_FILES = 20
MOST_FOLDERS = 12
CODE = re.compile(
    r".*\.(?:sh|bash|zsh|fish|py|pyz|pth|js|mjs|cjs|ts|mts|rb|pl|pm|php|lua|tcl|mk|awk|sed|ps1|jar|class|cmake|so)"
)
TOO_MANY_FILES = f"it names more than {MOST_FILES} files"
TOO_MANY_FOLDERS = f"it names more than {MOST_FOLDERS} folders"


def find_run_targets(jail: Jail, run: RunFiles) -> tuple[list[str], str]:
    """Return the files, below the workspace, and why these may not be all; empty if they are."""
    try:
        start = jail.to_relative(run.folder)
    except Refusal:
        return [], run.untold or "it starts outside the workspace"
    seen: dict[str, os.stat_result | None] = {}
    folders, files, untold = dict.fromkeys((start, *run.folders)), dict[str, None](), run.untold
    for folder in iter_growing(folders):
        for name in run.names:
            path = _join(jail, folder, name)
            if path is None or path in seen:
                continue
            seen[path] = found = _look(jail, path)
            if found is None:
                continue
            if stat.S_ISDIR(found.st_mode):
                folders[path] = None
            elif stat.S_ISREG(found.st_mode) and (run.any_file or _is_program(path, found)):
                files[path] = None
        if len(folders) > MOST_FOLDERS:
            untold = untold or TOO_MANY_FOLDERS
            break
    if len(files) > MOST_FILES:
        untold = untold or TOO_MANY_FILES
    return [*files][:MOST_FILES], untold


def iter_growing(folders: Mapping[str, None]) -> Iterator[str]:
    """Go through the folders in order, also those that are added meanwhile."""
    at = 0
    while at < len(folders):
        yield [*folders][at]
        at += 1


def _join(jail: Jail, folder: str, name: str) -> str | None:
    """Return the path below the workspace; None for another one, because models change nothing there."""
    try:
        return jail.to_relative(posixpath.join(folder, name))
    except Refusal:
        return None


def _look(jail: Jail, path: str) -> os.stat_result | None:
    with suppress(OSError, ValueError):
        return (jail.root / path).stat()
    return None


def _is_program(path: str, found: os.stat_result) -> bool:
    return bool(found.st_mode & 0o111) or CODE.fullmatch(path) is not None
