"""What does a path lead to, as an approval is bound to it?"""

import os
import stat
from contextlib import suppress
from hashlib import file_digest
from typing import NamedTuple

from mcp_server.guards.jail import Jail, JailPath, format_identity, join_path
from mcp_server.model.results import Refusal

MAX_HASHED_BYTES = 256 << 20
"""Of a larger file, an approval is bound to the device and inode alone."""


class Target(NamedTuple):
    """What a path leads to. An approval is bound to it."""

    path: str
    """The real path below the workspace."""
    identity: str
    """Device and inode of what is there; empty if nothing is."""
    size: int = 0
    sha256: str = ""
    """Of the file that the call overwrites or deletes."""
    folder: str = ""
    """If nothing is there: device and inode of the deepest folder that exists."""


def find_targets(jail: Jail, path: str, hashed: bool) -> tuple[Target, ...]:
    """Find what a path leads to: the end of its links and, where it differs, the link itself, which some tools act on.

    `hashed`: the call overwrites or deletes a file there. Empty if the path may not be opened.
    """
    found: dict[Target, None] = {}
    with suppress(Refusal, OSError):
        for follow in (True, False):
            with jail.open_deepest(path, follow, reading=not hashed) as (place, missing):
                found[_describe_target(jail, place, missing, hashed)] = None
    return tuple(found)


def _describe_target(jail: Jail, place: JailPath, missing: str, hashed: bool) -> Target:
    found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    if missing:
        return Target(join_path(place.path, missing), "", folder=format_identity(found))
    if not (hashed and stat.S_ISREG(found.st_mode) and found.st_size <= MAX_HASHED_BYTES):
        return Target(place.path, format_identity(found))
    with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as file:
        found = os.fstat(file.fileno())
        return Target(place.path, format_identity(found), found.st_size, file_digest(file, "sha256").hexdigest())
