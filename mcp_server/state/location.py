"""Which state does this account use? The workspace's own, or a separate one beside another account's.

State is foreign if it is sealed with a key that this account does not have, and this account never worked in it: it
came with the folder, or another account works here, or all keys were lost. Foreign state is left as it is, and this
account keeps its own below it. If this account did work in it, the same is tampering, which opening the state handles.
"""

import hashlib
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from mcp_server.state.engine.chain import ANCHOR, KEY, SLOT, Anchor, LedgerKey

ACCOUNTS = "accounts"
ELSEWHERE, MARKS = "workspaces", "states"
"""Folders beside an account's keys: states of workspaces whose own state folder it may not enter, and notes of where it
worked."""
OF_ANOTHER = (
    "{} was sealed with a key that this account does not have; this account starts its own state beside it. Until "
    "you choose a posture at a terminal, the choices in that file can only restrict what may run."
)
EXCHANGED = (
    "it is not sealed with this account's key, although this account has worked here: either the file was replaced or "
    "the key was lost. Choose a posture at a terminal, such as `menugate profile normal`: that sets the file aside as "
    "evidence, starts a new one, and keeps the stricter choices."
)
STATE = "state.db"
SHARED = (".menugate", ACCOUNTS)
"""Folders in a workspace that are shared by everyone who works there."""


def is_known_state(secrets: Path | None, folder: Path) -> bool:
    """Did this account work in the state in this folder?"""
    return secrets is not None and get_path_beside_keys(secrets, MARKS, folder).exists()


def remember_state(secrets: Path | None, folder: Path) -> None:
    """Note that this account worked here. If the note cannot be written, the seal made with our key proves it too."""
    if secrets is None or is_known_state(secrets, folder):
        return
    mark = get_path_beside_keys(secrets, MARKS, folder)
    with suppress(OSError):
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        mark.write_text(f"{folder}\n", "utf-8", "surrogateescape")


def find_state_folder(top: Path, secrets: Path | None) -> Path:
    """Return the folder in which this account keeps a workspace's state."""
    if secrets is not None and is_closed_to_account(top):
        # Only its owner can enter, so we cannot read whether anything there restricts us.
        return get_path_beside_keys(secrets, ELSEWHERE, top)
    if is_known_state(secrets, top) or top.is_symlink():
        return top
    key = LedgerKey.load(secrets)
    own = top / ACCOUNTS / key.account if key else None
    if own is not None and is_known_state(secrets, own):
        return own
    if secrets is not None and (secrets / KEY).is_dir():
        # No key exists and none can be made, so nothing is sealed; a caller that needs one is told why.
        return top
    if not any(os.path.lexists(top / name) for name in (STATE, ANCHOR)) and find_folder_owner(top) is None:
        return top
    _wait_for_first_start(top)
    key = key or LedgerKey.load(secrets)
    if key is not None and is_sealed_by(key, top):
        return top
    # The only place where merely looking creates a key: the folder is named after it.
    return own or top / ACCOUNTS / LedgerKey.load_or_create(secrets).account


def _wait_for_first_start(top: Path) -> None:
    """Another process of ours may be making the state at this moment. It holds the lock until its seal is there."""
    if not read_anchor_bytes(top / ANCHOR):
        from mcp_server.state.engine.sqlite import wait_for_lock  # hardly ever

        wait_for_lock((top / STATE).with_suffix(".lock"))


def find_all_state_folders(top: Path, places: Sequence[Path]) -> tuple[Path, ...]:
    """Return every folder in which a server of this workspace may keep its state, whatever its keys. `places`: of
    keys."""
    beside: list[Path] = []
    with suppress(OSError):
        beside = sorted((top / ACCOUNTS).iterdir())
    own = (top, *beside, *(get_path_beside_keys(one, ELSEWHERE, top) for one in places))
    # `Path` raises for a place that may not be looked into.
    return tuple(one for one in own if os.access(one, os.R_OK | os.X_OK) and not os.path.islink(one))  # noqa: PTH114


def is_closed_to_account(top: Path) -> bool:
    """Does another account keep its state there, closed to this one?"""
    try:
        found = top.lstat()
    except OSError:
        return False
    effective = os.access in os.supports_effective_ids
    may_enter = os.access(top, os.X_OK, effective_ids=effective)
    return stat.S_ISDIR(found.st_mode) and found.st_uid != os.geteuid() and not may_enter


def find_folder_owner(top: Path) -> os.stat_result | None:
    """Return the owner of the folder that root works in; None if we are not root, or the folder is root's own."""
    if os.geteuid() != 0:
        return None
    found = next(one for one in (top, *top.parents) if one.exists()).stat()
    return found if found.st_uid != 0 else None


def hand_to_owner(made: Path) -> None:
    """Give what root creates in another account's folder to that account, or its owner would be locked out."""
    if made.name in SHARED and (whose := find_folder_owner(made.parent)) is not None:
        os.chown(made, whose.st_uid, whose.st_gid, follow_symlinks=False)


def is_own_file(path: Path) -> bool:
    """Did this account write it?"""
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def make_private_folder(folder: Path) -> None:
    """Create the folder and missing parents, each accessible to its owner alone."""
    for one in reversed([folder, *folder.parents]):
        if not one.is_dir():
            one.mkdir(mode=0o700, exist_ok=True)
            hand_to_owner(one)


@contextmanager
def open_real_folder(state: Path, name: str) -> Generator[int, None, None]:
    """Open a folder inside a state folder, and create it if it is missing.

    Raises `OSError` if a link has taken the place of a folder of the state: it may lead to where tools read and write.
    """
    depth = 3 if state.parent.name == ACCOUNTS else 1
    real = os.open(Path(*state.parts[:-depth]), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for level, part in enumerate((*state.parts[-depth:], name)):
            if level == depth:
                with suppress(FileExistsError):
                    os.mkdir(part, mode=0o700, dir_fd=real)
            above, real = real, os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=real)
            os.close(above)
        yield real
    finally:
        os.close(real)


def write_private_file(path: Path, text: str, durable: bool = False, folder: int | None = None) -> None:
    """Replace a file that only this account may read. A concurrent reader finds the old content or the new. `folder`:
    an open one that the path is relative to."""
    draft = path.with_name(f".{path.name}-{token_hex(8)}.tmp")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(text)
            if durable:
                stream.flush()
                os.fsync(file)
        os.replace(draft, path, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)


def find_foreign_state(folder: Path) -> Path | None:
    """Return the other account's state file beside which this folder keeps its own; None if this one came first."""
    return folder.parents[1] / STATE if folder.parent.name == ACCOUNTS else None


def is_sealed_by(key: LedgerKey, folder: Path) -> bool:
    """Was the anchor there written with this key?"""
    text = read_anchor_bytes(folder / ANCHOR)
    return text is not None and Anchor.parse_line(text[:SLOT], key) is not None


def read_anchor_bytes(path: Path) -> bytes | None:
    """Read an anchor file without ever blocking; None if there is none."""
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


def get_path_beside_keys(secrets: Path, kind: str, folder: Path) -> Path:
    """The place for something about a folder, whose name may be too long for a file."""
    return secrets / kind / hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
