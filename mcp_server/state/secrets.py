"""Which secrets are stored, and what are their values? One file for each, beside this account's keys.

If the system keyring works, a value is encrypted with a key that only the keyring has; else only the file's mode
protects it. A file or folder that another account could have written or read counts as unusable, never as empty.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Any

from msgspec.structs import replace

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.secrets import Keyring, KeyringUnavailable, SecretEntry, SecretPlace, SecretUnavailable
from mcp_server.model.text import find_nearest_name
from mcp_server.state.account import GROUP_AND_OTHERS
from mcp_server.state.engine.disk import NO_ROOM
from mcp_server.state.location import make_private_folder, write_private_file
from mcp_server.state.secret_files import StoredSecret, format_file, get_id, make_id, read_stored, unseal

FOLDER, USES = "secrets", "secret-uses"
MAX_SECRETS = 1000
KEYRING_PAUSE = 60.0
"""Seconds for which a keyring that failed is not asked again."""
LOCK_SECONDS = 45.0
"""Longer than another process needs, even if its keyring never answers."""
NO_KEYRING = "there is none here"


@dataclass(frozen=True, slots=True)
class LoadedSecrets:
    values: tuple[str, ...] = field(repr=False)
    faults: tuple[str, ...] = ()
    """Why some values are unknown."""


@dataclass
class SecretStore:
    """The secrets of this account."""

    keys: Path
    """The folder of this account's keys."""
    keyring: Keyring | None = None
    now_ns: Callable[[], int] = time.time_ns
    keyring_fault: str = ""
    """Why the keyring was not used, for the last call that wanted it."""
    _opened: dict[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """The keyring's keys, by their ids."""
    _ask_again: float = 0.0

    @property
    def folder(self) -> Path:
        return self.keys / FOLDER

    def list_entries(self) -> tuple[list[SecretEntry], list[str]]:
        """Return what may be shown of every secret, by name, and what is wrong with files. Asks no keyring."""
        stored, faults = self._load_all()
        return [self._add_last_use(one.entry) for one in stored], faults

    def put(self, name: str, value: str, workspace: str = "", origins: tuple[str, ...] = ()) -> SecretEntry:
        """Store a value, in place of an earlier one for the same folder."""
        with _explain_faults(self.folder), self._open_folder(create=True) as folder:
            assert folder is not None
            with _hold_lock(folder, self.folder):
                stored, _ = self._load_all(folder)
                if len(stored) >= MAX_SECRETS:
                    raise Refusal(Problem(Code.TOO_LARGE, f"{MAX_SECRETS:,} secrets are stored.", "Remove some."))
                same = next((one.entry for one in stored if get_id(one.entry) == make_id(name, workspace)), None)
                now = self.now_ns()
                key = self._find_sealing_key(stored)
                place = SecretPlace.KEYRING if key else SecretPlace.FILE
                entry = SecretEntry(name, workspace, origins, place, same.created if same else now, now)
                write_private_file(Path(get_id(entry) + ".json"), format_file(entry, value, key), True, folder)
                return entry

    def remove(self, name: str, workspace: str = "") -> bool:
        """Delete a secret; False if there was none."""
        with _explain_faults(self.folder), self._open_folder() as folder:
            if folder is None:
                return False
            id = make_id(name, workspace)
            with suppress(FileNotFoundError):
                (self.keys / USES / id).unlink()
            try:
                os.unlink(f"{id}.json", dir_fd=folder)
            except FileNotFoundError:
                return False
            return True

    def find_value(self, name: str, workspace: str) -> str:
        """Return the value for a server of this folder, or raise `SecretUnavailable`."""
        return self._read_value(self._find(name, workspace))

    def note_use(self, name: str, workspace: str, user: str) -> None:
        """Note that a server was started with the value."""
        with suppress(SecretUnavailable, OSError, Refusal):
            uses = self.keys / USES
            uses.mkdir(mode=0o700, exist_ok=True)
            id = get_id(self._find(name, workspace).entry)
            write_private_file(uses / id, json.dumps({"at": self.now_ns(), "by": user[:100]}))

    def _find(self, name: str, workspace: str) -> StoredSecret:
        stored, faults = self._load_all()
        known = [one for one in stored if one.entry.workspace in ("", workspace)]
        wanted = [one for one in known if one.entry.name == name]
        if not wanted:
            raise SecretUnavailable(_describe_missing(name, [one.entry.name for one in known], faults))
        return max(wanted, key=lambda one: one.entry.workspace)

    def load_values(self) -> LoadedSecrets:
        """Return every value that can be read, so that none of them is shown."""
        stored, faults = self._load_all()
        values: list[str] = []
        for one in stored:
            try:
                values.append(self._read_value(one))
            except SecretUnavailable as wrong:
                faults.append(str(wrong))
        return LoadedSecrets(tuple(dict.fromkeys(values)), tuple(faults))

    def get_stamp(self) -> tuple[int, int] | None:
        """Return what changes whenever a secret is stored or removed; None if none was ever stored."""
        try:
            status = os.stat(self.folder, follow_symlinks=False)  # noqa: PTH116  # asked several times a second
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    # Files.

    def _load_all(self, folder: int | None = None) -> tuple[list[StoredSecret], list[str]]:
        if folder is None:
            with _explain_faults(self.folder), self._open_folder() as opened:
                return self._load_all(opened) if opened is not None else ([], [])
        stored, faults = list[StoredSecret](), list[str]()
        for file in sorted(os.listdir(folder)):  # noqa: PTH208  # of an open folder
            if not file.endswith(".json") or file.startswith("."):
                continue
            try:
                stored.append(read_stored(folder, file))
            except FileNotFoundError:
                continue  # removed meanwhile
            except (OSError, ValueError, RecursionError) as wrong:
                why = wrong.strerror if isinstance(wrong, OSError) else wrong
                faults.append(f"{self.folder / file} is not used: {why}. Delete it and set the secret again.")
        return sorted(stored, key=lambda one: (one.entry.name, one.entry.workspace)), faults

    @contextmanager
    def _open_folder(self, create: bool = False) -> Generator[int | None, None, None]:
        """Open the folder, which must be this account's alone; None if it does not exist."""
        if create:
            make_private_folder(self.keys)
            with suppress(FileExistsError):
                self.folder.mkdir(mode=0o700)
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
        except NotADirectoryError:
            raise _build_refusal(f"`{self.folder}` is a link or a file, not a folder of yours.", self.folder) from None
        try:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid() or status.st_mode & GROUP_AND_OTHERS:
                raise _build_refusal(f"Other accounts may use `{self.folder}`.", self.folder)
            yield folder
        finally:
            os.close(folder)

    # The keyring.

    def _find_sealing_key(self, stored: list[StoredSecret]) -> tuple[str, bytes] | None:
        """Return the keyring's key for new values, and make one if it has none. None if the keyring cannot be used."""
        try:
            for id in dict.fromkeys(one.key for one in stored if one.key):
                if key := self._load_key(id):
                    return id, key
            if self.keyring is None:
                raise KeyringUnavailable(NO_KEYRING)
            id, key = token_hex(8), token_bytes(32)
            self.keyring.save_key(id, key.hex())
            if self.keyring.load_key(id) != key.hex():
                raise KeyringUnavailable("it does not return what it was given")
        except KeyringUnavailable as wrong:
            self.keyring_fault = str(wrong)
            return None
        self._opened[id] = key
        return id, key

    def _load_key(self, id: str) -> bytes | None:
        if key := self._opened.get(id):
            return key
        if self.keyring is None:
            raise KeyringUnavailable(NO_KEYRING)
        if time.monotonic() < self._ask_again:
            raise KeyringUnavailable(self.keyring_fault)
        try:
            found = self.keyring.load_key(id)
        except KeyringUnavailable as wrong:
            self.keyring_fault, self._ask_again = str(wrong), time.monotonic() + KEYRING_PAUSE
            raise
        try:
            key = bytes.fromhex(found or "")
        except ValueError:
            key = b""
        if len(key) != 32:
            return None
        self._opened[id] = key
        return key

    def _read_value(self, stored: StoredSecret) -> str:
        if not stored.sealed:
            return stored.value
        name = stored.entry.name
        try:
            key = self._load_key(stored.key)
        except KeyringUnavailable as wrong:
            raise SecretUnavailable(f"the secret `{name}` needs the system keyring: {wrong}.") from None
        if key is None:
            raise SecretUnavailable(
                f"the system keyring no longer has the key of the secret `{name}`. Set it again with "
                f"`menugate secret set {name}`."
            )
        return unseal(stored, key)

    # The last use: in a folder of its own, so that no use rewrites a value or looks like a change.

    def _add_last_use(self, entry: SecretEntry) -> SecretEntry:
        try:
            said: Any = json.loads((self.keys / USES / get_id(entry)).read_text("utf-8"))
            used, by = int(said["at"]), str(said["by"])
        except (OSError, ValueError, TypeError, KeyError):
            return entry
        return replace(entry, used=used, used_by=by)


def _describe_missing(name: str, known: list[str], faults: list[str]) -> str:
    near = find_nearest_name(name, known)
    hint = f"; did you mean `{near}`?" if near else "."
    unread = f" {faults[0]}" if faults else ""
    return f"there is no secret `{name}`{hint} Store it with `menugate secret set {name}`.{unread}"


def _build_refusal(what: str, folder: Path) -> Refusal:
    way_out = f"Look at it with `ls -ld {folder}`, and move it away if it is not yours."
    return Refusal(Problem(Code.STORE_UNAVAILABLE, what, way_out))


@contextmanager
def _explain_faults(folder: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as wrong:
        if wrong.errno in NO_ROOM:
            full = Problem(Code.STORE_FULL, "the disk is full, and nothing was changed.", "Make room, and try again.")
            raise Refusal(full) from None
        what = f"`{folder}` cannot be used ({wrong.strerror})."
        raise Refusal(Problem(Code.STORE_UNAVAILABLE, what, "Nothing was changed.")) from None


@contextmanager
def _hold_lock(folder: int, path: Path) -> Generator[None, None, None]:
    """One process stores at a time, so that two do not each make a key for the keyring."""
    for _ in _count_attempts():
        with suppress(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
    else:
        raise Refusal(Problem(Code.BUSY, f"another process is changing `{path}`.", "Try again in a moment."))
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _count_attempts() -> Iterator[None]:
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)
