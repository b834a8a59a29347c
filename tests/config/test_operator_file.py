"""Is the operator's file replaced at once, and is no other file ever written?"""

import os
import stat
from pathlib import Path

import pytest

from mcp_server.config.operator_file import UnusableFile, read_operator_file, replace_operator_file

BEFORE, AFTER = "glance: off\n", "glance: on\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "menugate.yaml"


@pytest.fixture
def written(path: Path) -> Path:
    path.parent.mkdir()
    path.write_text(BEFORE)
    path.chmod(0o640)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_file_is_created_with_its_folder_for_this_account_alone(path: Path) -> None:
    file = read_operator_file(path)
    assert (file.data, file.text) == (None, "")
    replace_operator_file(file, AFTER)
    assert path.read_text() == AFTER
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644, 0o400])
def test_the_permissions_of_a_file_stay(written: Path, permissions: int) -> None:
    written.chmod(permissions)
    replace_operator_file(read_operator_file(written), AFTER)
    assert (written.read_text(), mode(written)) == (AFTER, permissions)
    assert os.listdir(written.parent) == [written.name]


def test_a_byte_order_mark_stays(written: Path) -> None:
    written.write_bytes(b"\xef\xbb\xbf" + BEFORE.encode())
    file = read_operator_file(written)
    assert file.text == BEFORE
    replace_operator_file(file, AFTER)
    assert written.read_bytes() == b"\xef\xbb\xbf" + AFTER.encode()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("link", "is a link"),
        ("dead link", "is a link"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
        ("bytes", "not UTF-8"),
    ],
)
def test_what_is_not_a_file_of_text_is_refused(path: Path, tmp_path: Path, kind: str, why: str) -> None:
    path.parent.mkdir()
    target = tmp_path / "target.yaml"
    if kind == "link":
        target.write_text(BEFORE)
    if "link" in kind:
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff")
    with pytest.raises(UnusableFile, match=why):
        read_operator_file(path)
    assert not target.exists() or target.read_text() == BEFORE


def test_the_file_of_another_account_is_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = written.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(UnusableFile, match="belongs to another account"):
        read_operator_file(written)


@pytest.mark.parametrize("change", ["text", "permissions", "link", "gone"])
def test_what_changed_meanwhile_stays(written: Path, tmp_path: Path, change: str) -> None:
    file = read_operator_file(written)
    if change == "text":
        written.write_text("glance:  on\n")
    elif change == "permissions":
        written.chmod(0o600)
    else:
        written.rename(other := tmp_path / "other.yaml")
        if change == "link":
            written.symlink_to(other)
    with pytest.raises(UnusableFile, match=r"changed meanwhile|is a link"):
        replace_operator_file(file, AFTER)
    assert not written.exists() or written.read_text() != AFTER
    assert not [name for name in os.listdir(written.parent) if name.endswith(".tmp")]


def test_a_file_that_appeared_meanwhile_stays(path: Path) -> None:
    file = read_operator_file(path)
    path.parent.mkdir()
    path.write_text(BEFORE)
    with pytest.raises(UnusableFile, match="changed meanwhile"):
        replace_operator_file(file, AFTER)
    assert path.read_text() == BEFORE


def test_a_folder_that_cannot_be_made_says_why(path: Path) -> None:
    path.parent.write_text("a file\n")
    with pytest.raises(UnusableFile, match="cannot be changed: not a directory"):
        replace_operator_file(read_operator_file(path), AFTER)
