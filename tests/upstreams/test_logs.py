"""Is what servers print kept within bounds, without secrets, and readable by you alone?"""

from pathlib import Path

import pytest

from mcp_server.upstreams import logs
from mcp_server.upstreams.logs import UpstreamLog


def test_a_flood_leaves_a_bounded_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_FILE_BYTES", 10_000)
    monkeypatch.setattr(logs, "FREE_BYTES", 30_000)
    log = UpstreamLog(tmp_path / "logs" / "one.log")
    for number in range(2000):
        log.add(f"line {number} {'x' * 60}\n".encode())
    monkeypatch.setattr(logs, "FREE_BYTES", 10**9)
    log.note("the end")
    files = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert files == ["one.log", "one.log.1"]
    assert sum(path.stat().st_size for path in (tmp_path / "logs").iterdir()) <= 20_200
    text = (tmp_path / "logs" / "one.log").read_text()
    assert "bytes were dropped here" in text and text.endswith("the end\n")
    assert (tmp_path / "logs" / "one.log").stat().st_mode & 0o777 == 0o600


def test_a_secret_is_removed_even_if_it_arrives_in_pieces(tmp_path: Path) -> None:
    log = UpstreamLog(tmp_path / "one.log", lambda text: text.replace("s3cret", "[removed]"))
    for piece in (b"the key is s3", b"cret\nnext ", b"s3cret"):
        log.add(piece)
    log.flush()
    assert (tmp_path / "one.log").read_text() == "the key is [removed]\nnext [removed]\n"
