"""Which umask does git need in a repository that several accounts share?

Git creates a folder with what the umask leaves, then adds the missing permissions, the setgid bit among them. The
sandbox refuses root that bit, because a file must not get it; a new folder inherits it from its parent. So we choose a
umask that leaves nothing missing, and git has nothing to add.
"""

import os

from mcp_server.model.files import Files
from tools.git.repository import Repository, find_entry

UMASKS = {"group": "g+rwx", "all": "g+rwx,o+rx", "world": "g+rwx,o+rx", "everybody": "g+rwx,o+rx"}
MAX_CONFIG_BYTES = 1 << 20
CONFIG_FILES = ("config", "config.worktree")
KEY = b"sharedrepository"


def may_be_shared(files: Files, repository: Repository) -> bool:
    """True if the umask may matter. Git reads this key from these files only, and follows no `include` from them."""
    if os.geteuid() != 0:
        return False
    paths = [f"{folder}/{name}" for folder in (repository.common, repository.folder) for name in CONFIG_FILES]
    return any(KEY in files.read(path, MAX_CONFIG_BYTES).data.lower() for path in paths if find_entry(files, path))


def to_umask(value: str) -> str:
    """Return the argument of `umask` for this value of `core.sharedRepository`; empty if it shares nothing."""
    if value in UMASKS:
        return UMASKS[value]
    if value and set(value) <= set("01234567"):
        number = int(value, 8)
        if number in (1, 2):
            return UMASKS["group" if number == 1 else "all"]
        rights = number & 0o666
        return f"{0o777 & ~(rights | (rights & 0o444) >> 2):03o}" if rights & 0o600 == 0o600 else ""
    return UMASKS["group"] if value in ("", "true", "yes", "on") else ""
