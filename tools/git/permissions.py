"""Which rights does git give to what it makes in a repository that several accounts share?

It makes a folder with the rights that the shell's mask leaves, and then gives it those that are missing, among them the
bit that hands the group on. As root the sandbox refuses that bit, which a file must not get; a folder has it from the
one it is made in. So the mask leaves what would be missing, and git has nothing left to give.
"""

import os

from mcp_server.model.files import Files
from tools.git.repository import Repository, find_entry

NAMED = {"group": "g+rwx", "all": "g+rwx,o+rx", "world": "g+rwx,o+rx", "everybody": "g+rwx,o+rx"}
MOST_CONFIG = 1 << 20
FILES = ("config", "config.worktree")
KEY = b"sharedrepository"


def may_be_shared(files: Files, repository: Repository) -> bool:
    """May the mask matter? Git looks for it in this file alone, and follows no `include` from there."""
    if os.geteuid() != 0:
        return False
    paths = [f"{folder}/{name}" for folder in (repository.common, repository.folder) for name in FILES]
    return any(KEY in files.read(path, MOST_CONFIG).data.lower() for path in paths if find_entry(files, path))


def to_umask(value: str) -> str:
    """What `umask` is told, by the value of `core.sharedRepository`; empty where nobody shares."""
    if value in NAMED:
        return NAMED[value]
    if value and set(value) <= set("01234567"):
        number = int(value, 8)
        if number in (1, 2):
            return NAMED["group" if number == 1 else "all"]
        rights = number & 0o666
        return f"{0o777 & ~(rights | (rights & 0o444) >> 2):03o}" if rights & 0o600 == 0o600 else ""
    return NAMED["group"] if value in ("", "true", "yes", "on") else ""
