"""What does a path lead to, as an approval is bound to it?"""

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import file_digest
from typing import NamedTuple

from mcp_server.guards.git_index import Tracking, find_tracking
from mcp_server.guards.jail import Jail, JailPath, format_identity, join_path
from mcp_server.guards.refusals import describe_file_kind
from mcp_server.model.files import is_secret
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


def digest_targets(targets: Sequence[Target]) -> str:
    """Digest everything that an approval is bound to here, to tell later whether it is still so."""
    return hashlib.sha256(json.dumps([*targets]).encode()).hexdigest()


# What is there, as a question says it? Nothing is bound to this.

MAX_SHOWN_BYTES = 256 << 10
"""Of a larger file, a question shows no differences."""


class SeenPath(NamedTuple):
    argument: str
    path: str
    """The real path below the workspace."""
    kind: str
    """`file`, `folder`, `link`, `missing`, or what else it is."""
    size: int = 0
    tracking: Tracking = Tracking.UNKNOWN
    text: str | None = None
    """The content of a text file that is not too large, if it was wanted."""
    named: str = ""
    """The path as the call names it, relative to the workspace."""


def look_at_path(jail: Jail, argument: str, path: str, with_text: bool) -> SeenPath | None:
    """Describe what the path of an argument leads to; None if it may not be opened."""
    with suppress(Refusal, OSError), jail.open_deepest(path, reading=not with_text) as (place, missing):
        if missing:
            return SeenPath(argument, join_path(place.path, missing), "missing", named=path)
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        tracking = find_tracking(jail, place.path)
        if not stat.S_ISREG(found.st_mode):
            kind = "folder" if stat.S_ISDIR(found.st_mode) else describe_file_kind(found.st_mode)
            return SeenPath(argument, place.path, kind, tracking=tracking, named=path)
        text = None
        if with_text and found.st_size <= MAX_SHOWN_BYTES and not is_secret(place.path):
            with (
                suppress(Refusal, OSError, UnicodeDecodeError),
                os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as file,
            ):
                text = file.read(MAX_SHOWN_BYTES + 1).decode()
        return SeenPath(argument, place.path, "file", found.st_size, tracking, text, path)
    return None
