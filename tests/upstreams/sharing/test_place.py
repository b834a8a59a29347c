"""Is there one holder at a time, however the last one ended, and can nobody else reach its socket?"""

import fcntl
import multiprocessing
import os
import signal
import socket
from pathlib import Path

import pytest

from mcp_server.upstreams.sharing.place import InstanceHold, InstanceHolder, MeetingPlace, is_same_account, load_holders

pytestmark = pytest.mark.anyio
NOTE = {"server": "test", "workspace": "/work"}


@pytest.fixture
def place(tmp_path: Path) -> MeetingPlace:
    made = MeetingPlace(tmp_path / "instances", "d" * 32)
    made.prepare()
    return made


def hold(place: MeetingPlace) -> InstanceHold:
    found = place.try_to_hold(NOTE)
    assert found is not None
    return found


def test_there_is_one_holder_at_a_time(place: MeetingPlace) -> None:
    first = hold(place)
    assert place.try_to_hold(NOTE) is None
    first.release()
    assert not list(place.folder.iterdir())
    hold(place).release()


def hold_and_sleep(place: MeetingPlace, connection: "socket.socket") -> None:
    hold(place)
    connection.send(b"x")
    signal.pause()


def test_a_killed_holder_lets_go_at_once(place: MeetingPlace) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = multiprocessing.get_context("spawn").Process(target=hold_and_sleep, args=(place, theirs))
        child.start()
        assert ours.recv(1) == b"x" and place.try_to_hold(NOTE) is None
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    hold(place).release()


async def test_only_the_owner_can_reach_the_socket(place: MeetingPlace) -> None:
    held = hold(place)
    with held.listening as listening:
        assert place.folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in place.folder.iterdir()} == {0o600}
        with await place.connect() as connected:
            arrived, _ = listening.accept()
            with arrived:
                assert is_same_account(arrived) and is_same_account(connected)
    held.release()


async def test_the_folder_may_be_deep(tmp_path: Path) -> None:
    place = MeetingPlace(tmp_path / ("x" * 100) / ("y" * 100), "d" * 32)
    place.prepare()
    held = hold(place)
    with await place.connect():
        held.release()


def test_another_account_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_same_account(ours)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert not is_same_account(ours)


def test_a_folder_that_others_can_enter_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(PermissionError):
        MeetingPlace(tmp_path / "open", "d").prepare()
    (tmp_path / "link").symlink_to(tmp_path / "open")
    with pytest.raises(PermissionError):
        MeetingPlace(tmp_path / "link", "d").prepare()


def test_a_link_in_place_of_the_lock_is_not_followed(place: MeetingPlace, tmp_path: Path) -> None:
    place.lock.symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        place.try_to_hold(NOTE)
    assert not (tmp_path / "victim").exists()


def test_a_lock_that_its_last_holder_just_removed_does_not_count(
    place: MeetingPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, before = fcntl.flock, [hold(place)]

    def lock_after_the_end(file: int, how: int) -> None:
        while before:
            before.pop().release()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_after_the_end)
    held = hold(place)
    assert os.path.samestat(os.fstat(held.file), place.lock.stat())
    assert place.try_to_hold(NOTE) is None
    held.release()


def test_who_holds_what_is_known_and_the_dead_leave_nothing(place: MeetingPlace) -> None:
    other = MeetingPlace(place.folder, "e" * 32)
    dead = other.try_to_hold({**NOTE, "server": "dead"})
    held = place.try_to_hold({**NOTE, "server": "alive"})
    assert dead is not None and held is not None
    keys = place.folder.parent
    assert load_holders(keys) == [
        InstanceHolder(os.getpid(), "alive", "/work"),
        InstanceHolder(os.getpid(), "dead", "/work"),
    ]
    dead.listening.close()
    os.close(dead.file)
    assert load_holders(keys) == [InstanceHolder(os.getpid(), "alive", "/work")]
    third = MeetingPlace(place.folder, "f" * 32).try_to_hold({**NOTE, "server": "third"})
    assert third is not None and {path.stem[0] for path in place.folder.iterdir()} == {"d", "f"}
    third.release()
    held.release()
    assert load_holders(keys) == []
