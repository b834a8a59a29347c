"""Which files are there that a call may run? Looks at what its words could name, from every folder that one names."""

import os
import posixpath
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from mcp_server.guards.jail import Jail
from mcp_server.model.results import Refusal
from mcp_server.model.text import quote_text
from mcp_server.model.tools import RunFiles

MOST_FILES = 20
MOST_FOLDERS = 12
CODE = re.compile(
    r".*\.(?:sh|bash|zsh|fish|py|pyz|pth|js|mjs|cjs|ts|mts|rb|pl|pm|php|lua|tcl|mk|awk|sed|ps1|jar|class|cmake|so)"
)
TOO_MANY_FILES = f"it names more than {MOST_FILES} files"
TOO_MANY_FOLDERS = f"it names more than {MOST_FOLDERS} folders"


class RunTargets(NamedTuple):
    files: Sequence[str] = ()
    """Below the workspace."""
    untold: str = ""
    """Why these may not be all; empty if they are."""
    loads: bool = False
    """They are code, which may load other files."""
    pinned: Sequence[str] = ()
    """Those that the call does nothing but run."""


def find_run_targets(jail: Jail, run: RunFiles) -> RunTargets:
    try:
        start = jail.to_relative(run.folder)
    except Refusal:
        return RunTargets((), run.untold or "it starts outside the workspace", True)
    seen = set[str]()
    wanted, scripts, starts = set(run.scripts), set[str](), set[str]()
    folders, files, untold = dict.fromkeys((start, *run.folders)), dict[str, None](), run.untold
    for folder in iter_growing(folders):
        for name in run.names:
            for path in _list_paths(jail, folder, name):
                found = None if path in seen else _look(jail, path)
                seen.add(path)
                is_file = path in files or (found is not None and stat.S_ISREG(found.st_mode))
                if name in wanted and is_file:
                    scripts.add(name)
                    starts.add(path)
                if name in wanted and path in folders:
                    untold = untold or f"{quote_text(name)} is a folder"
                if found is not None and stat.S_ISDIR(found.st_mode):
                    folders[path] = None
                elif found is not None and stat.S_ISREG(found.st_mode) and (run.any_file or _is_program(path, found)):
                    files[path] = None
        if len(folders) > MOST_FOLDERS:
            untold = untold or TOO_MANY_FOLDERS
            break
    if len(files) > MOST_FILES:
        untold = untold or TOO_MANY_FILES
    untold = untold or next((_describe_missing(jail, start, name) for name in sorted(wanted - scripts)), "")
    is_own = any(path.rpartition("/")[0] in run.folders for path in files)
    pinned = [path for path in files if path in starts] if run.alone else []
    return RunTargets([*files][:MOST_FILES], untold, run.loads or is_own or bool(untold), pinned)


def _describe_missing(jail: Jail, start: str, name: str) -> str:
    is_inside = any(_list_paths(jail, start, name))
    return f"there is no file {quote_text(name)} now" if is_inside else f"{quote_text(name)} is outside the workspace"


def iter_growing(folders: Mapping[str, None]) -> Iterator[str]:
    """Go through the folders in order, also those that are added meanwhile."""
    at = 0
    while at < len(folders):
        yield [*folders][at]
        at += 1


def _list_paths(jail: Jail, folder: str, name: str) -> Iterator[str]:
    """List the paths below the workspace that the name may mean there. Behind a link, `..` is the folder above the
    link for the shell's own `cd`, and the folder above its target for everything else. Models change nothing outside.
    """
    joined = posixpath.join(folder, name)
    with suppress(Refusal):
        yield jail.to_relative(joined)
    if ".." in joined.split("/"):
        with suppress(Refusal, OSError, ValueError):
            yield jail.to_relative(os.path.realpath(jail.root / joined))


def _look(jail: Jail, path: str) -> os.stat_result | None:
    """None also for what a link has outside."""
    with suppress(OSError, ValueError):
        real = (jail.root / path).resolve(strict=True)
        return real.stat() if real.is_relative_to(jail.root) else None
    return None


def _is_program(path: str, found: os.stat_result) -> bool:
    return bool(found.st_mode & 0o111) or CODE.fullmatch(path) is not None
