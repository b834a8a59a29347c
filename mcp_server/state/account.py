"""Where does this account keep its keys? The account that the process runs as decides, not its environment.

`HOME` differs under sudo and in many hosts, and some drop `XDG_STATE_HOME`. We would find no keys there and take this
account's own state for another's. So we use the first writable folder of these: `MENUGATE_STATE_HOME`, the home
that the system knows for the account, `/var/lib/menugate` and `/run/user`. If none is writable, this process gets a key
of its own, which ends with it.
"""

import os
import pwd
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.results import Code, Problem
from mcp_server.state.engine.chain import LedgerKey

STOP_HINT = " `menugate stop` needs no keys: it ends everything that runs here."
NO_KEY_FOLDER = Problem(
    Code.STORE_UNAVAILABLE,
    "no writable folder can keep this account's keys, so your choice would apply to this command alone and to no "
    "running server; nothing was changed.",
    f"Set MENUGATE_STATE_HOME to a folder that you can write to, for this command and for the server.{STOP_HINT}",
)
STATE_BELOW_HOME = Path(".local") / "state"
NAME = "menugate"
SYSTEM_FOLDER = Path("/var/lib/menugate")
RUNTIME_FOLDER = Path("/run/user")
GROUP_AND_OTHERS = 0o077


class KeyFolder(Struct, frozen=True):
    """A folder that may hold this account's keys."""

    folder: Path
    base: Path | None = None
    """The part of it that must exist, because it is not ours to create."""
    named: bool = False
    """The operator named it."""
    volatile: bool = False
    """It is emptied when the machine restarts."""


def list_key_folders(named: Path | None) -> tuple[KeyFolder, ...]:
    """List them in order, first the one that the operator named."""
    uid = os.geteuid()
    session = RUNTIME_FOLDER / str(uid)
    folders = [KeyFolder(SYSTEM_FOLDER / str(uid)), KeyFolder(session / NAME, session, volatile=True)]
    try:
        home = Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        home = Path("/")
    # A service often has no home, or `/`.
    if home.is_absolute() and home != Path("/"):
        folders.insert(0, KeyFolder(home / STATE_BELOW_HOME / NAME, home))
    if named is not None:
        same = next((one for one in folders if one.folder == named), KeyFolder(named))
        folders.insert(0, replace(same, named=True))
    return tuple(folders)


def is_usable(place: KeyFolder) -> bool:
    """Can this account keep keys there? Nothing is created: a command that only looks leaves nothing behind."""
    if place.base is not None and not place.base.is_dir():
        return False
    existing = next(path for path in (place.folder, *place.folder.parents) if os.path.lexists(path))
    if not existing.is_dir() or not os.access(
        existing, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
    ):
        return False
    # Unless it was named, it must belong to this account: another account may have put its keys there.
    return place.named or is_own_folder(place.folder)


def is_own_folder(folder: Path) -> bool:
    """Does it belong to this account, or not exist yet?"""
    try:
        stats = folder.lstat()
    except OSError:
        return not os.path.lexists(folder)
    return stat.S_ISDIR(stats.st_mode) and stats.st_uid == os.geteuid()


def move_keys(old: Path, choice: KeyFolder, untrusted: tuple[Path, ...]) -> bool:
    """Move keys from an earlier folder; False if there was nothing to move. `untrusted`: folders where others could
    have put them. A folder that is emptied when the machine restarts gets a copy instead."""
    new = choice.folder
    if old == new or LedgerKey.load(new) is not None or not _has_own_key(old):
        return False
    if any(old.resolve().is_relative_to(folder) for folder in untrusted):
        return False
    draft = new.with_name(f".{new.name}-{os.getpid()}")
    try:
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if new.is_dir() and not any(new.iterdir()):
            new.rmdir()
        shutil.copytree(old, draft, symlinks=True)
        draft.rename(new)
    except OSError:
        # Another process was first, or the folder is not writable after all.
        shutil.rmtree(draft, ignore_errors=True)
        return False
    if not choice.volatile:
        with suppress(OSError):
            shutil.rmtree(old)
    return True


def _has_own_key(folder: Path) -> bool:
    """Does the folder hold a key that only this account can have read or written?"""
    try:
        for path in (folder, folder / "ledger.key"):
            stats = path.lstat()
            if stats.st_uid != os.geteuid() or stats.st_mode & GROUP_AND_OTHERS:
                return False
        return LedgerKey.load(folder) is not None
    except OSError:
        return False
