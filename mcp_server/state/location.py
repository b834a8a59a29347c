"""Which state is this account's? The one of the workspace, or one of its own beside what another account keeps there.

State is foreign where it is sealed with a key that this account does not have and this account never worked in it: it
came with the folder, or another account works here, or all keys were lost. It is left as it is, and this account has a
state of its own below it. Where this account did work in it, the same is tampering, which the opening deals with.
"""

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mcp_server.state.engine.chain import ANCHOR, KEY, SLOT, Anchor, LedgerKey

ACCOUNTS = "accounts"
ELSEWHERE = "workspaces"
"""Below an account's keys: its states of workspaces whose own folder it may not enter."""
OF_ANOTHER = (
    "{} was sealed with a key that this account does not have; this account begins a state of its own beside it, and "
    "what was chosen there narrows until you choose a posture at a terminal."
)
EXCHANGED = (
    "it is not sealed with this account's key, although this account has worked here: it was exchanged, or the key was "
    "lost. Choose a posture at a terminal, such as `menugate profile normal`: that puts the file aside as evidence, "
    "begins a new one, and takes over what was narrower."
)
STATE = "state.db"
SHARED = (".menugate", ACCOUNTS)
"""Folders in a workspace that everybody who works there goes through."""


def is_known_state(secrets: Path | None, folder: Path) -> bool:
    """Did this account work in the state that is kept in this folder?"""
    return secrets is not None and _get_mark_path(secrets, folder).exists()


def remember_state(secrets: Path | None, folder: Path) -> None:
    """From now on it is known. Where that cannot be written, what is sealed with our key says so all the same."""
    if secrets is None or is_known_state(secrets, folder):
        return
    mark = _get_mark_path(secrets, folder)
    with suppress(OSError):
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        mark.write_text(f"{folder}\n", "utf-8", "surrogateescape")


def find_state_folder(top: Path, secrets: Path | None) -> Path:
    """The folder in which this account keeps the state of a workspace."""
    if secrets is not None and is_closed_to_account(top):
        # Its owner's alone: whether anything narrows there, nobody else can read.
        return secrets / ELSEWHERE / _name_from_folder(top)
    if is_known_state(secrets, top) or top.is_symlink():
        return top
    key = LedgerKey.load(secrets)
    own = top / ACCOUNTS / key.account if key else None
    if own is not None and is_known_state(secrets, own):
        return own
    if secrets is not None and (secrets / KEY).is_dir():
        # There is no key and none can be made, so nothing is sealed; whoever looks is told why.
        return top
    if not any(os.path.lexists(top / name) for name in (STATE, ANCHOR)) and find_folder_owner(top) is None:
        return top
    if key is not None and is_sealed_by(key, top):
        return top
    # Only here a key is made for who merely looks: the folder goes by its name.
    return own or top / ACCOUNTS / LedgerKey.load_or_create(secrets).account


def find_all_state_folders(top: Path, places: Sequence[Path]) -> tuple[Path, ...]:
    """Every folder in which a server of this workspace may keep its state, whatever its keys. `places`: of keys."""
    beside: list[Path] = []
    with suppress(OSError):
        beside = sorted((top / ACCOUNTS).iterdir())
    own = (top, *beside, *(one / ELSEWHERE / _name_from_folder(top) for one in places))
    # A Path raises where it may not look.
    return tuple(one for one in own if os.access(one, os.R_OK | os.X_OK) and not os.path.islink(one))  # noqa: PTH114


def is_closed_to_account(top: Path) -> bool:
    """Does another account keep its state there, where this one may not enter?"""
    try:
        found = top.lstat()
    except OSError:
        return False
    effective = os.access in os.supports_effective_ids
    may_enter = os.access(top, os.X_OK, effective_ids=effective)
    return stat.S_ISDIR(found.st_mode) and found.st_uid != os.geteuid() and not may_enter


def find_folder_owner(top: Path) -> os.stat_result | None:
    """Whose folder root works in; None for everybody else, and where it is root's own."""
    if os.geteuid() != 0:
        return None
    found = next(one for one in (top, *top.parents) if one.exists()).stat()
    return found if found.st_uid != 0 else None


def hand_to_owner(made: Path) -> None:
    """What root makes in another's folder is that one's: they are not to be left outside of it."""
    if made.name in SHARED and (whose := find_folder_owner(made.parent)) is not None:
        os.chown(made, whose.st_uid, whose.st_gid, follow_symlinks=False)


def make_private_folder(folder: Path) -> None:
    """With whatever is missing above it, each for its owner alone."""
    for one in reversed([folder, *folder.parents]):
        if not one.is_dir():
            one.mkdir(mode=0o700, exist_ok=True)
            hand_to_owner(one)


def find_foreign_state(folder: Path) -> Path | None:
    """The state file of another account beside which this folder has its own; None where it is the first."""
    return folder.parents[1] / STATE if folder.parent.name == ACCOUNTS else None


def is_sealed_by(key: LedgerKey, folder: Path) -> bool:
    """Did somebody with this key write the anchor there?"""
    text = read_anchor_bytes(folder / ANCHOR)
    return text is not None and Anchor.parse_line(text[:SLOT], key) is not None


def read_anchor_bytes(path: Path) -> bytes | None:
    """What stands in an anchor's file, which is never waited for; None where there is none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, SLOT * 2)
    except OSError:
        return None
    finally:
        os.close(file)


def _get_mark_path(secrets: Path, folder: Path) -> Path:
    return secrets / "states" / _name_from_folder(folder)


def _name_from_folder(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
