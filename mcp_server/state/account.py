"""Where does this account keep its keys? By the account that the process runs as, not by its environment.

`HOME` is another one under sudo and in many hosts, and `XDG_STATE_HOME` is dropped by some: whoever looked for the keys
there would find none, and take the state of this very account for a stranger's. So the places are, in this order, what
`MENUGATE_STATE_HOME` names, the home that the system knows of the account, `/var/lib/menugate` and `/run/user`; the
first that can be written is taken. Where there is none, this process has a key of its own, which ends with it.
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
    """The places there are, for this account on this machine."""

    given: Path | None
    home: Path | None
    """As the system knows it."""
    system: Path
    session: Path
    """Gone with the next start of the machine."""

    @property
    def candidates(self) -> tuple[Path, ...]:
        found = (self.given, self.home and self.home / ABOVE / NAME, self.system, self.session / NAME)
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class KeyFolder:
    """Where the keys are."""

    folder: Path | None
    """None where no place can be written: then a key is this process's alone."""
    volatile: bool = False
    """It does not survive the next start of the machine."""
    passed: tuple[Path, ...] = field(default=())
    """Places that come first and cannot be written."""

    @property
    def lifetime(self) -> str:
        """In words for the person; empty where there is nothing to say."""
        if self.folder is None:
            return "for this process alone, because no folder can be written that could keep them"
        return "until this machine is started again" if self.volatile else ""


def find_key_folders(given: Path | None) -> KeyFolders:
    number = os.geteuid()
    try:
        home = Path(pwd.getpwuid(number).pw_dir)
    except KeyError:
        home = None
    # A service's home is often none, or the root of everything.
    usable = home is not None and home.is_absolute() and home != Path("/")
    return KeyFolders(given, home if usable else None, SYSTEM / str(number), SESSION / str(number))


def choose_key_folder(places: KeyFolders) -> KeyFolder:
    """The first that can be written. Nothing is made here: who only looks leaves nothing behind."""
    passed: list[Path] = []
    for place in places.candidates:
        named = place == places.given
        # What is not named has to be this account's own: where others may write too, somebody else may have been first.
        if is_writable(place, places) and (named or is_own_folder(place)):
            return KeyFolder(place, place == places.session / NAME, tuple(passed))
        passed.append(place)
    return KeyFolder(None, passed=tuple(passed))


def is_writable(place: Path, places: KeyFolders) -> bool:
    if place in (places.home and places.home / ABOVE / NAME, places.session / NAME):
        # Neither is ours to make.
        base = places.home if place != places.session / NAME else places.session
        if base is None or not base.is_dir():
            return False
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def is_own_folder(place: Path) -> bool:
    """Made by this account, or not there yet."""
    try:
        found = place.lstat()
    except OSError:
        return not os.path.lexists(place)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def move_keys(old: Path, kept: KeyFolder, elsewhere: tuple[Path, ...]) -> bool:
    """Keys from where they once were kept, once. `elsewhere`: where they could have been put by somebody else.

    A place that the next start of the machine empties gets a copy."""
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
        # Somebody was first, or it cannot be written after all: then there are other keys, or none.
        shutil.rmtree(draft, ignore_errors=True)
        return False
    if not kept.volatile:
        with suppress(OSError):
            shutil.rmtree(old)
    return True


def _has_own_key(folder: Path) -> bool:
    """A folder with a key that nobody but this account could read or put there."""
    try:
        found = [path.lstat() for path in (folder, folder / "ledger.key")]
        good = all(one.st_uid == os.geteuid() and not one.st_mode & OTHERS for one in found)
        return good and LedgerKey.load(folder) is not None
    except OSError:
        return False
