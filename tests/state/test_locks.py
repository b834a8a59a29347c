"""Is a server known to live from here, although nothing here shows it?"""

import json
from pathlib import Path

from mcp_server.state.locks import INITIAL_NAMESPACE, LifeLock, find_unseen_server
from mcp_server.state.processes import read_pid_namespace
from mcp_server.state.servers import FOLDER


def claim(lock: LifeLock, **about: object) -> None:
    """What the holder says of itself, as one in another container would."""
    said = json.loads(lock.path.read_text())
    lock.path.write_text(json.dumps({**said, **about}))


def test_one_that_is_seen_here_is_not_unseen(tmp_path: Path) -> None:
    assert find_unseen_server(tmp_path) is None
    lock = LifeLock.take(tmp_path)
    assert lock.path.stat().st_mode & 0o777 == 0o600
    assert find_unseen_server(tmp_path) is None
    lock.release()
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_one_of_a_process_that_nobody_sees_is(tmp_path: Path) -> None:
    lock = LifeLock.take(tmp_path)
    here = read_pid_namespace()
    claim(lock, pid=4_000_000, born="1", namespace=here)
    assert find_unseen_server(tmp_path) == 4_000_000
    if here != INITIAL_NAMESPACE:
        claim(lock, namespace="pid:[1]")
        assert find_unseen_server(tmp_path) == 4_000_000
    lock.path.write_text("not what we write")
    expected = None if here == INITIAL_NAMESPACE else 0
    assert find_unseen_server(tmp_path) == expected, "it may be in a container of this machine"
    lock.release()


def test_what_nobody_holds_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    left = tmp_path / FOLDER / "7-abcd.lock"
    left.write_text(json.dumps({"pid": 4_000_000, "born": "1", "namespace": "pid:[1]"}))
    assert find_unseen_server(tmp_path) is None
    assert not left.exists()


def test_two_servers_of_one_number_have_a_lock_each(tmp_path: Path) -> None:
    one, other = LifeLock.take(tmp_path), LifeLock.take(tmp_path)
    assert one.path != other.path
    one.release()
    assert other.path.exists()
    other.release()
