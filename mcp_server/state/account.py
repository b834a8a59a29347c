"""Where does this account keep its keys? Decided by the account that the process runs as, not by its environment.

`HOME` differs under sudo and in many hosts, and some drop `XDG_STATE_HOME`. We would find no keys there and take this
account's own state for somebody else's. So we use the first writable folder of these: `MENUGATE_STATE_HOME`, the home
that the system knows for the account, `/var/lib/menugate` and `/run/user`. If there is none, this process gets a key of
its own, which ends with it.
"""

import os
import pwd
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class KeyFolders:
    """The folders that may hold this account's keys."""

    configured: Path | None
    home: Path | None
    """As the system knows it."""
    system: Path
    session: Path
    """Emptied when the machine restarts."""

    @property
    def candidates(self) -> tuple[Path, ...]:
        folders = (self.configured, self.home and self.home / STATE_BELOW_HOME / NAME, self.system, self.session / NAME)
        return tuple(folder for folder in folders if folder is not None)


@dataclass(frozen=True, slots=True)
class KeyFolder:
    """The folder that was chosen for the keys."""

    folder: Path | None
    """None if no folder is writable: the key then belongs to this process alone."""
    volatile: bool = False
    """True if it does not survive a restart of the machine."""
    skipped: tuple[Path, ...] = field(default=())
    """Folders that come earlier in the order but cannot be used."""

    @property
    def lifetime(self) -> str:
        """Describe how long the keys last if that is not for good; otherwise empty."""
        if self.folder is None:
            return "for this process alone, because no folder that could keep them is writable"
        return "until this machine restarts" if self.volatile else ""


def find_key_folders(configured: Path | None) -> KeyFolders:
    uid = os.geteuid()
    try:
        home = Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        home = None
    # A service often has no home, or `/`.
    usable = home is not None and home.is_absolute() and home != Path("/")
    return KeyFolders(configured, home if usable else None, SYSTEM_FOLDER / str(uid), RUNTIME_FOLDER / str(uid))


def choose_key_folder(folders: KeyFolders) -> KeyFolder:
    """Choose the first usable folder, but do not create it: a command that only looks leaves nothing behind."""
    skipped: list[Path] = []
    for folder in folders.candidates:
        is_configured = folder == folders.configured
        # Unless configured, it must belong to this account: elsewhere somebody may have put keys of their own.
        if is_writable(folder, folders) and (is_configured or is_own_folder(folder)):
            return KeyFolder(folder, folder == folders.session / NAME, tuple(skipped))
        skipped.append(folder)
    return KeyFolder(None, skipped=tuple(skipped))


def is_writable(folder: Path, folders: KeyFolders) -> bool:
    if folder in (folders.home and folders.home / STATE_BELOW_HOME / NAME, folders.session / NAME):
        # We do not create these two ourselves.
        base = folders.home if folder != folders.session / NAME else folders.session
        if base is None or not base.is_dir():
            return False
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    return existing.is_dir() and os.access(
        existing, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
    )


def is_own_folder(folder: Path) -> bool:
    """Does it belong to this account, or not exist yet?"""
    try:
        stats = folder.lstat()
    except OSError:
        return not os.path.lexists(folder)
    return stat.S_ISDIR(stats.st_mode) and stats.st_uid == os.geteuid()


def move_keys(old: Path, choice: KeyFolder, untrusted: tuple[Path, ...]) -> bool:
    """Move keys from where they used to be, and say whether that happened. `untrusted`: folders where somebody else
    could have put them. A folder that is emptied when the machine restarts gets a copy instead."""
    new = choice.folder
    if new is None or old == new or LedgerKey.load(new) is not None or not _has_own_key(old):
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
