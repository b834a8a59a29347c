"""Full disks, stopped neighbours, damaged files: nothing acknowledged is lost, nothing runs off the record."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.model.posture import Posture, Profile
from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state import open as state_open
from mcp_server.state.engine.rows import PostureMoved
from mcp_server.state.engine.sqlite import find_network_share
from mcp_server.state.engine.transaction import LOST_EPOCH, Transaction, View
from mcp_server.state.store import Store
from tests.state.parts import Hands, Place, choose_all, intended, intent, outcome, posture_of

pytestmark = pytest.mark.anyio
LEAST = replace(Posture.most_restricted(), epoch=LOST_EPOCH)


async def code_of(store: Store) -> Code | None:
    try:
        await store.record_intent(intent())
    except Refusal as refusal:
        assert refusal.problem.message
        assert "sqlite" not in refusal.problem.text.lower().replace("sqlite:////", "")
        return refusal.problem.code
    return None


async def limit(store: Store, pages: int) -> None:
    """The engine's own notion of full: the file may not grow beyond so many pages."""

    def work(tx: Transaction) -> None:
        tx.link.cursor.execute(f"PRAGMA max_page_count = {pages}")

    await store.write(work)


async def test_when_the_disk_is_full_nothing_runs_and_reading_goes_on(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    session = await store.put_session(Session("s1", "me"))
    await limit(store, 1)
    acknowledged: list[int] = []
    code = None
    while code is None:
        try:
            acknowledged.append(await intended(store, intent()))
        except Refusal as refusal:
            code = refusal.problem.code
    assert code is Code.STORE_FULL
    assert not (place.state / "state.reserve").exists() or await code_of(store) is Code.STORE_FULL
    assert await store.find_session("s1") == session
    store.record_outcome(outcome(acknowledged[-1]))
    assert await code_of(store) is Code.STORE_FULL, "and the outcome waits"
    await limit_lifted(store)
    assert await code_of(store) is None
    assert (place.state / "state.reserve").stat().st_size == 1 << 20
    await hands.close()
    with place.reader() as state:
        rows = list(state.read_rows())
        assert {row.seq for row in rows if row.kind == "intent"} >= set(acknowledged)
        assert [row.fields["intent"] for row in rows if row.kind == "outcome"] == [acknowledged[-1]]
        assert state.verify().ok


async def limit_lifted(store: Store) -> None:
    def work(view: View) -> None:
        view.link.cursor.execute("PRAGMA max_page_count = 1000000")

    await store.read(work)


@pytest.mark.heavy
def test_a_disk_that_is_really_full_heals(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=3m none "{disk}" && exec "{sys.executable}" -m tests.state.full "{disk}"'
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", disk], capture_output=True)
    if probe.returncode:
        pytest.skip("no small disk can be made here: " + probe.stderr.decode().strip())
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@asynccontextmanager
async def stopped(script: str, *arguments: str) -> AsyncGenerator[None]:
    """Another process, stopped at the moment in which it says that it holds something."""
    child = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    try:
        assert await asyncio.to_thread(child.stdout.readline) == "holding\n"
        os.kill(child.pid, signal.SIGSTOP)
        yield
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


HOLD_LOCK = """
import fcntl, sys, time
file = open(sys.argv[1], "r+"); fcntl.flock(file, fcntl.LOCK_EX); print("holding", flush=True); time.sleep(60)
"""
HOLD_FILE = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1]); db.execute("BEGIN IMMEDIATE"); print("holding", flush=True); time.sleep(60)
"""


@pytest.mark.heavy
@pytest.mark.parametrize(("script", "name"), [(HOLD_LOCK, "state.lock"), (HOLD_FILE, "state.db")])
async def test_a_stopped_neighbour_costs_five_seconds_and_no_more(
    place: Place, hands: Hands, script: str, name: str
) -> None:
    store = await hands.open(place)
    before = await intended(store, intent())
    store.record_outcome(outcome(before))
    lags: list[float] = []

    async def beat() -> None:
        while True:
            then = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - then - 0.01)

    async with stopped(script, str(place.state / name)):
        heart = asyncio.create_task(beat())
        begun = time.monotonic()
        first = asyncio.create_task(code_of(store))
        await asyncio.sleep(1)
        second = asyncio.create_task(code_of(store))
        assert {await first, await second} == {Code.BUSY}, "who came later has waited long enough too"
        assert time.monotonic() - begun < 5.8
        heart.cancel()
    assert sorted(lags)[int(len(lags) * 0.99)] < 0.1, "the loop went on"
    assert await code_of(store) is None
    await hands.close()
    with place.reader() as state:
        assert [row.fields["intent"] for row in state.read_rows() if row.kind == "outcome"] == [before]
        assert state.verify().ok


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "its first page": lambda data: b"\xff" * 4096 + data[4096:],
    "its header": lambda data: b"not a database at all" + data[21:],
    "its end": lambda data: data[: len(data) // 2 // 4096 * 4096],
    "its tree": lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
}


@pytest.mark.parametrize("what", DAMAGE)
async def test_a_damaged_file_is_set_aside_and_the_least_holds(place: Place, hands: Hands, what: str) -> None:
    store = await hands.open(place)
    await choose_all(store, "me", Posture(profile=Profile.UNRESTRICTED), "all of it")
    await hands.close()
    spoiled = DAMAGE[what](place.file.read_bytes())
    place.file.write_bytes(spoiled)
    store = await hands.open(place)
    condition = await store.wait_until_ready()
    assert condition.fresh
    (aside,) = place.state.glob("state.db.corrupt-*")
    assert aside.read_bytes() == spoiled
    assert aside.name in condition.lost
    assert await posture_of(store, "me") == await posture_of(store, "anybody") == LEAST
    await hands.close()
    store = await hands.open(place)
    assert await posture_of(store, "me") == LEAST, "and still after the next start"
    settled = await choose_all(store, "me", Posture(epoch=LOST_EPOCH), "chosen again")
    assert await posture_of(store, "me") == settled
    with place.reader() as state:
        assert aside.name in state.describe_loss()
        assert "choose a posture" in state.load_messages()[0].text
        assert state.verify().ok


async def test_a_file_that_is_gone_while_its_anchor_is_there_was_lost(place: Place, hands: Hands) -> None:
    await hands.open(place)
    await hands.close()
    place.file.unlink()
    store = await hands.open(place)
    assert "gone" in (await store.wait_until_ready()).lost
    assert await posture_of(store, "me") == LEAST


async def test_a_file_taken_away_from_a_running_server_is_noticed(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await intended(store, intent())
    for file in place.state.iterdir():
        file.unlink()
    place.state.rmdir()
    assert await code_of(store) is None
    assert await posture_of(store, "me") == LEAST
    with place.reader() as state:
        assert "was removed" in state.describe_loss()
        assert state.verify().ok


async def test_two_processes_agree_on_the_new_file_after_one_set_the_old_aside(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    for file in place.state.glob("state.db*"):
        file.rename(file.with_name("elsewhere-" + file.name))
    assert isinstance(await one.record_intent(intent()), PostureMoved), (
        "decided under what somebody chose in the file that is gone"
    )
    seqs = [await intended(store, intent(posture=LEAST)) for store in (one, other, one)]
    with place.reader() as state:
        assert [row.seq for row in state.read_rows() if row.kind == "intent"] == seqs
        assert state.verify().ok


async def test_a_newer_layout_is_left_alone(place: Place, hands: Hands) -> None:
    await hands.open(place)
    await hands.close()
    place.sql("UPDATE workspace SET schema_version = 99")
    before = {file.name: file.read_bytes() for file in place.state.iterdir()}
    store = place.store()
    with pytest.raises(Refusal) as refusal:
        await store.wait_until_ready()
    assert "newer menugate" in refusal.value.problem.message
    assert await code_of(store) is Code.STORE_UNAVAILABLE
    await store.close()
    with pytest.raises(Refusal, match="newer"):
        place.reader()
    assert {name: (place.state / name).read_bytes() for name in before} == before


async def test_a_database_of_somebody_else_is_left_alone(place: Place) -> None:
    place.state.mkdir()
    place.sql("CREATE TABLE accounts (x)")
    before = place.file.read_bytes()
    store = place.store()
    assert await code_of(store) is Code.STORE_UNAVAILABLE
    await store.close()
    assert place.file.read_bytes() == before


async def test_a_file_with_a_trigger_in_it_is_not_trusted(place: Place, hands: Hands) -> None:
    await hands.open(place)
    await hands.close()
    place.sql("CREATE TRIGGER hide AFTER INSERT ON ledger BEGIN DELETE FROM ledger WHERE seq = new.seq; END")
    assert "statements" in (await (await hands.open(place)).wait_until_ready()).lost


async def test_a_folder_that_cannot_be_written_is_told(place: Place) -> None:
    place.state.write_text("a file where the folder should be")
    store = place.store()
    assert await code_of(store) is Code.STORE_UNAVAILABLE
    place.state.unlink()
    assert await code_of(store) is None, "and it heals by itself"
    await store.close()


async def test_the_files_are_their_owners_alone(place: Place, hands: Hands) -> None:
    await intended(await hands.open(place), intent())
    modes = {file.name: file.stat().st_mode & 0o077 for file in place.state.iterdir() if file.name != ".gitignore"}
    modes |= {file.name: file.stat().st_mode & 0o077 for file in place.secrets.iterdir()}
    assert set(modes) >= {"state.db", "state.db-wal", "ledger.anchor", "state.lock", "ledger.key"}
    assert set(modes.values()) == {0}
    assert (place.state / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("seed", range(24))
async def test_no_damage_goes_unseen(place: Place, hands: Hands, seed: int) -> None:
    """Overwrite some bytes anywhere: the file is set aside, or verify finds it, or every row is still what it was."""
    store = await hands.open(place)
    for number in range(60):
        await intended(store, intent(about=str(number)))
    await hands.close()
    with place.reader() as state:
        before = [(row.seq, row.body, row.hash) for row in state.read_rows()]
    chance = random.Random(seed)
    data = bytearray(place.file.read_bytes())
    start = chance.randrange(100, len(data) - 40)
    data[start : start + chance.randrange(1, 40)] = chance.randbytes(chance.randrange(1, 40))
    place.file.write_bytes(data)
    store = place.store()
    try:
        condition = await store.wait_until_ready()
    except Refusal as refusal:
        assert refusal.problem.code is Code.STORE_UNAVAILABLE
        return
    finally:
        await store.close()
    with place.reader() as state:
        after = [(row.seq, row.body, row.hash) for row in state.read_rows()][: len(before)]
        assert condition.lost or not state.verify().ok or after == before


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("21 1 8:1 / / rw - ext4 /dev/vda rw\n30 21 0:40 / /home rw - nfs4 server:/home rw", "nfs4"),
        ("21 1 8:1 / / rw - ext4 /dev/vda rw\n30 21 0:40 / /home/me/x rw - nfs4 server:/home rw", None),
        ("21 1 8:1 / / rw - nfs server:/ rw\n30 21 0:40 / /home rw - ext4 /dev/vdb rw", None),
        ("21 1 8:1 / / rw - ext4 /dev/vda rw\n30 21 0:40 / /home/me/my\\040work rw shared:1 - cifs //x rw", "cifs"),
        ("30 21 0:40 / /home/me rw - fuse.sshfs x rw", "fuse.sshfs"),
        ("garbage\n\n", None),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(mounts: str, expected: str | None) -> None:
    assert find_network_share(Path("/home/me/my work"), mounts) == expected


async def test_a_network_file_system_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_open, "find_network_share", lambda _path: "nfs4")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]  # there is none here to mount
    store = place.store()
    with pytest.raises(Refusal, match="network file system"):
        await store.wait_until_ready()
    await store.close()
    assert not place.file.exists()


async def test_a_commit_reaches_the_disk(store: Store) -> None:
    """A kill does not show the difference, a power cut would."""

    def work(view: View) -> tuple[int]:
        return view.link.cursor.execute("PRAGMA synchronous").fetchone()

    assert await store.read(work) == (2,), "FULL"


async def test_an_engine_that_is_not_there_is_told(tmp_path: Path, place: Place) -> None:
    store = Store.open("mysql://x/y", secrets=tmp_path, clock=place.clock, new_id=lambda: "id")
    with pytest.raises(Refusal, match="cannot keep its state in"):
        await store.wait_until_ready()
    await store.close()


async def test_a_file_that_breaks_while_it_is_open_is_refused_and_then_set_aside(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await intended(store, intent())
    await hands.close()
    store = await hands.open(place)
    await posture_of(store, "me")
    connection = sqlite3.connect(place.file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = place.file.stat().st_size
    with open(place.file, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    assert await code_of(store) is Code.STORE_UNAVAILABLE
    assert await code_of(store) is None
    assert await posture_of(store, "me") == LEAST
    assert list(place.state.glob("state.db.corrupt-*"))
