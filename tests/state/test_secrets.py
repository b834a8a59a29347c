"""Is a secret kept where only its account can read it, and never lost or exchanged in silence?"""

import json
import multiprocessing
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.model.secrets import KeyringUnavailable, SecretPlace, SecretUnavailable
from mcp_server.state import secrets as state_secrets
from mcp_server.state.secrets import SecretStore

VALUE = "canary-5up3r-secret"
ROOT = Path(__file__).parents[2]


@dataclass
class MemoryKeyring:
    """A keyring that works, until `fault` says why it does not."""

    keys: dict[str, str] = field(default_factory=dict[str, str])
    fault: str = ""
    asked: int = 0

    def load_key(self, id: str) -> str | None:
        self.asked += 1
        if self.fault:
            raise KeyringUnavailable(self.fault)
        return self.keys.get(id)

    def save_key(self, id: str, key: str) -> None:
        self.asked += 1
        if self.fault:
            raise KeyringUnavailable(self.fault)
        self.keys[id] = key


def everything_written(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def the_file(store: SecretStore) -> Path:
    (path,) = store.folder.glob("*.json")
    return path


@pytest.fixture(params=[True, False], ids=["keyring", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SecretStore:
    return SecretStore(tmp_path / "keys", MemoryKeyring() if request.param else None)


def test_a_secret_is_stored_listed_used_and_removed(store: SecretStore) -> None:
    assert store.list_entries() == ([], [])
    first = store.put("TOKEN", "another-value", origins=("https://example.org",))
    entry = store.put("TOKEN", VALUE, origins=("https://example.org",))
    assert (entry.created, entry.changed >= first.changed) == (first.created, True)
    assert store.list_entries() == ([entry], [])
    assert SecretStore(store.keys, store.keyring).find_value("TOKEN", "/work") == VALUE
    store.note_use("TOKEN", "/work", "server github")
    ((used,), _) = store.list_entries()
    assert used.used >= entry.changed
    assert used.used_by == "server github"
    assert store.load_values().values == (VALUE,)
    assert (store.remove("TOKEN"), store.remove("TOKEN")) == (True, False)
    assert store.list_entries() == ([], [])
    assert VALUE not in everything_written(store.keys)


def test_only_the_account_can_read_it(store: SecretStore) -> None:
    store.put("TOKEN", VALUE)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in store.folder.iterdir()] == [0o600]
    in_the_open = VALUE in everything_written(store.keys)
    assert in_the_open is (store.keyring is None), "with a keyring, the value is nowhere in a file"


def test_one_for_this_folder_comes_before_one_for_all(store: SecretStore) -> None:
    store.put("TOKEN", VALUE)
    store.put("TOKEN", "only-in-that-folder", workspace="/that")
    assert store.find_value("TOKEN", "/that") == "only-in-that-folder"
    assert store.find_value("TOKEN", "/this") == VALUE
    store.remove("TOKEN")
    with pytest.raises(SecretUnavailable, match="there is no secret `TOKEN`"):
        store.find_value("TOKEN", "/this")


def test_an_unknown_name_gets_the_nearest_and_the_command(store: SecretStore) -> None:
    store.put("GITHUB_TOKEN", VALUE)
    with pytest.raises(SecretUnavailable, match=r"did you mean `GITHUB_TOKEN`\?.*menugate secret set GITHUB_TOKN"):
        store.find_value("GITHUB_TOKN", "/")


PLANTED: dict[str, tuple[Callable[[Path], object], str]] = {
    "readable by others": (lambda path: path.chmod(0o644), "other accounts"),
    "a link": (lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to(path.with_suffix(".x"))), "link"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), "not a file"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "not a file"),
    "no JSON": (lambda path: path.write_text("{"), "not used"),
    "another shape": (lambda path: path.write_text("[1]"), "not what menugate writes"),
    "no fields": (lambda path: path.write_text("{}"), "not what menugate writes"),
    "deep": (lambda path: path.write_text("[" * 100_000), "not used"),
    "huge": (lambda path: path.write_text(" " * 300_000), "too large"),
    "bytes": (lambda path: path.write_bytes(b"\xff\xfe\0"), "not used"),
    "another name": (lambda path: path.rename(path.with_name("0" * 32 + ".json")), "another name"),
}


@pytest.mark.parametrize("plant", PLANTED)
def test_a_file_that_is_not_ours_alone_is_named_and_not_used(plant: str, store: SecretStore) -> None:
    store.put("TOKEN", VALUE)
    change, says = PLANTED[plant]
    change(the_file(store))
    entries, (fault,) = store.list_entries()
    assert entries == []
    assert says in fault.replace("Too many levels of symbolic links", "a link")
    assert store.load_values().values == ()
    with pytest.raises(SecretUnavailable, match="there is no secret"):
        store.find_value("TOKEN", "/")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_or_folder_of_another_account_is_not_used(store: SecretStore) -> None:
    store.put("TOKEN", VALUE)
    os.chown(the_file(store), 12345, 12345)
    assert "other accounts" in store.list_entries()[1][0]
    os.chown(store.folder, 12345, 12345)
    for act in (store.list_entries, store.load_values, lambda: store.put("OTHER", VALUE)):
        with pytest.raises(Refusal) as refused:
            act()
        assert "Other accounts may use" in refused.value.problem.message


def test_a_folder_that_others_may_use_is_refused(store: SecretStore) -> None:
    store.put("TOKEN", VALUE)
    store.folder.chmod(0o755)
    with pytest.raises(Refusal) as refused:
        store.put("TOKEN", VALUE)
    assert "Other accounts may use" in refused.value.problem.message


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_stands_in_the_folders_place_is_refused(kind: str, store: SecretStore, tmp_path: Path) -> None:
    store.keys.mkdir(parents=True, exist_ok=True)
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if kind == "link":
        store.folder.symlink_to(tmp_path / "elsewhere")
    else:
        store.folder.write_text("")
    for act in (lambda: store.put("TOKEN", VALUE), store.list_entries, lambda: store.remove("TOKEN")):
        with pytest.raises(Refusal) as refused:
            act()
        assert "is a link or a file" in refused.value.problem.message
    assert list((tmp_path / "elsewhere").iterdir()) == []


# The keyring.


def test_a_keyring_that_fails_is_no_loss(tmp_path: Path) -> None:
    keyring = MemoryKeyring(fault="it did not answer within 10 seconds")
    store = SecretStore(tmp_path, keyring)
    assert store.put("TOKEN", VALUE).place is SecretPlace.FILE
    assert store.keyring_fault == keyring.fault
    keyring.fault = ""
    assert SecretStore(tmp_path, keyring).put("TOKEN", VALUE).place is SecretPlace.KEYRING
    assert VALUE not in everything_written(tmp_path)


def test_one_key_opens_all_and_is_asked_for_once(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    for number in range(5):
        SecretStore(tmp_path, keyring).put(f"TOKEN{number}", f"{VALUE}{number}")
    assert len(keyring.keys) == 1
    keyring.asked = 0
    store = SecretStore(tmp_path, keyring)
    assert len(store.load_values().values) == 5
    assert len(store.load_values().values) == 5
    assert keyring.asked == 1


def test_a_keyring_that_hangs_is_asked_once_and_named(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    for number in range(5):
        SecretStore(tmp_path, keyring).put(f"TOKEN{number}", f"{VALUE}{number}")
    keyring.fault, keyring.asked = "it did not answer", 0
    store = SecretStore(tmp_path, keyring)
    assert (store.load_values().values, len(store.load_values().faults), keyring.asked) == ((), 5, 1)
    with pytest.raises(SecretUnavailable, match="needs the system keyring: it did not answer"):
        store.find_value("TOKEN1", "/")
    assert len(store.list_entries()[0]) == 5, "the list needs no keyring"


def test_a_lost_key_is_said_and_a_new_value_heals(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    SecretStore(tmp_path, keyring).put("TOKEN", VALUE)
    keyring.keys.clear()
    store = SecretStore(tmp_path, keyring)
    with pytest.raises(SecretUnavailable, match="no longer has the key"):
        store.find_value("TOKEN", "/")
    store.put("TOKEN", VALUE)
    assert store.find_value("TOKEN", "/") == VALUE


def test_a_sealed_value_opens_under_its_own_name_and_web_sites_alone(tmp_path: Path) -> None:
    store = SecretStore(tmp_path, MemoryKeyring())
    store.put("TOKEN", VALUE, origins=("https://example.org",))
    file = the_file(store)
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "origins": ["https://evil.example"]}))
    with pytest.raises(SecretUnavailable, match="was changed since you stored it"):
        store.find_value("TOKEN", "/")
    file.write_text(json.dumps({**said, "sealed": "!!!"}))
    assert store.load_values().values == ()


# Disks and other processes.


def _put_many(keys: Path, number: int) -> None:
    for turn in range(5):
        SecretStore(keys).put("SHARED", f"{VALUE}-{number}-{turn}")
        SecretStore(keys).put(f"OWN_{number}", f"{VALUE}-{number}-{turn}")


def test_processes_that_store_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    started = [context.Process(target=_put_many, args=(tmp_path, number)) for number in range(3)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0, 0, 0]
    store = SecretStore(tmp_path)
    entries, faults = store.list_entries()
    assert ([entry.name for entry in entries], faults) == (["OWN_0", "OWN_1", "OWN_2", "SHARED"], [])
    assert all(store.find_value(f"OWN_{number}", "/") == f"{VALUE}-{number}-4" for number in range(3))
    assert [path for path in store.folder.iterdir() if path.suffix != ".json"] == []


def test_a_lock_that_is_never_given_back_ends_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    store = SecretStore(tmp_path)
    store.put("TOKEN", VALUE)
    monkeypatch.setattr(state_secrets, "LOCK_SECONDS", 0.1)
    held = os.open(store.folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Refusal) as refused:
            store.put("TOKEN", "another-value")
    finally:
        os.close(held)
    assert refused.value.problem.code is Code.BUSY
    assert store.find_value("TOKEN", "/") == VALUE


FULL_DISK = """
import sys
from pathlib import Path
from mcp_server.model.results import Refusal
from mcp_server.state.secrets import SecretStore
disk = Path(sys.argv[1])
store = SecretStore(disk / "keys")
store.put("TOKEN", "the-old-value")
try:
    with (disk / "ballast").open("wb") as file:
        while True:
            file.write(bytes(4096)); file.flush()
except OSError:
    pass
try:
    store.put("TOKEN", "the-new-value" * 1000)
except Refusal as refused:
    assert refused.problem.code == "STORE_FULL", refused.problem
else:
    raise AssertionError("it was stored on a full disk")
assert store.find_value("TOKEN", "/") == "the-old-value"
assert len(list(store.folder.iterdir())) == 1
"""


def test_a_full_disk_keeps_the_old_value(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=200k none "{disk}"'
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode != 0:
        pytest.skip("no disk can be made here")
    script = f'{mount} && exec "{sys.executable}" -c "$1" "{disk}"'
    found = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", FULL_DISK], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Refusal) as refused:
        SecretStore(tmp_path).put("TOKEN", VALUE)
    assert refused.value.problem.code is Code.STORE_UNAVAILABLE
