"""Where does this account keep its keys? Decided by the account that the process runs as, not by its environment.

`HOME` differs under sudo and in many hosts, and some drop `XDG_STATE_HOME`. Looking for keys there would find none and
treat this account's own state as foreign. So the candidates are, in this order: what `MENUGATE_STATE_HOME` names, the
home that the system knows for the account, `/var/lib/menugate` and `/run/user`. The first writable one is used. If
there is none, this process has a key of its own, which ends with it.
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

STOPS = " `menugate stop` needs no keys: it ends everything that runs here."
HOMELESS = Problem(
    Code.STORE_UNAVAILABLE,
    "no folder can be written that could keep this account's keys, so what you choose would count for this command "
    "alone and for no server that runs; nothing was changed.",
    f"Set MENUGATE_STATE_HOME to a folder that you can write, for this command and for the server.{STOPS}",
)
ABOVE = Path(".local") / "state"
NAME = "menugate"
SYSTEM = Path("/var/lib/menugate")
SESSION = Path("/run/user")
OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class KeyFolders:
    """The candidate places for this account on this machine."""

    given: Path | None
    home: Path | None
    """As the system knows it."""
    system: Path
    session: Path
    """Emptied when the machine restarts."""

    @property
    def candidates(self) -> tuple[Path, ...]:
        found = (self.given, self.home and self.home / ABOVE / NAME, self.system, self.session / NAME)
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class KeyFolder:
    """Where the keys are."""

    folder: Path | None
    """None if no place is writable: the key then belongs to this process alone."""
    volatile: bool = False
    """True if it does not survive a restart of the machine."""
    passed: tuple[Path, ...] = field(default=())
    """Places that come earlier in the order but are not writable."""

    @property
    def lifetime(self) -> str:
        """Say in words for the person how long the keys last; empty if there is nothing to say."""
        if self.folder is None:
            return "for this process alone, because no folder can be written that could keep them"
        return "until this machine is started again" if self.volatile else ""


def find_key_folders(given: Path | None) -> KeyFolders:
    number = os.geteuid()
    try:
        home = Path(pwd.getpwuid(number).pw_dir)
    except KeyError:
        home = None
    # A service's home is often none, or the file system's root.
    usable = home is not None and home.is_absolute() and home != Path("/")
    return KeyFolders(given, home if usable else None, SYSTEM / str(number), SESSION / str(number))


def choose_key_folder(places: KeyFolders) -> KeyFolder:
    """Choose the first writable place. Creates nothing: a command that only looks leaves nothing behind."""
    passed: list[Path] = []
    for place in places.candidates:
        named = place == places.given
        # A place that was not named explicitly must belong to this account: if others can write there, another may have
        # been first.
        if is_writable(place, places) and (named or is_own_folder(place)):
            return KeyFolder(place, place == places.session / NAME, tuple(passed))
        passed.append(place)
    return KeyFolder(None, passed=tuple(passed))


def is_writable(place: Path, places: KeyFolders) -> bool:
    if place in (places.home and places.home / ABOVE / NAME, places.session / NAME):
        # Neither is ours to create.
        base = places.home if place != places.session / NAME else places.session
        if base is None or not base.is_dir():
            return False
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def is_own_folder(place: Path) -> bool:
    """Did this account create it, or does it not exist yet?"""
    try:
        found = place.lstat()
    except OSError:
        return not os.path.lexists(place)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def move_keys(old: Path, kept: KeyFolder, elsewhere: tuple[Path, ...]) -> bool:
    """Move keys once from where they used to be kept. `elsewhere`: places where someone else could have put them.

    A place that is emptied when the machine restarts gets a copy.
    """
    new = kept.folder
    if new is None or old == new or LedgerKey.load(new) is not None or not _has_own_key(old):
        return False
    if any(old.resolve().is_relative_to(one) for one in elsewhere):
        return False
    draft = new.with_name(f".{new.name}-{os.getpid()}")
    try:
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if new.is_dir() and not any(new.iterdir()):
            new.rmdir()
        shutil.copytree(old, draft, symlinks=True)
        draft.rename(new)
    except OSError:
        # Another process was first, or the place is not writable after all: then there are other keys, or none.
        shutil.rmtree(draft, ignore_errors=True)
        return False
    if not kept.volatile:
        with suppress(OSError):
            shutil.rmtree(old)
    return True


def _has_own_key(folder: Path) -> bool:
    """Does the folder hold a key that only this account could read or put there?"""
    try:
        found = [path.lstat() for path in (folder, folder / "ledger.key")]
        good = all(one.st_uid == os.geteuid() and not one.st_mode & OTHERS for one in found)
        return good and LedgerKey.load(folder) is not None
    except OSError:
        return False
