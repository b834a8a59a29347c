"""Do both ways to open a folder agree, and does neither leave the root?"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_server.guards.openat import (
    FOLDER,
    MOST_LINKS,
    Resolve,
    can_kernel_resolve,
    open_by_kernel,
    open_by_steps,
    read_link_target,
)

WAYS = [open_by_steps, *([open_by_kernel] if can_kernel_resolve() else [])]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    work = tmp_path / "work"
    (work / "a" / "b").mkdir(parents=True)
    (work / "file").write_text("x")
    (tmp_path / "outside").mkdir()
    for name, target in {
        "down": "a/b",
        "up": "../outside",
        "around": "a/../a/b",
        "absolute": str(work / "a"),
        "circle": "circle",
        "gone": "nowhere",
    }.items():
        (work / name).symlink_to(target)
    (work / "a" / "back").symlink_to("../a/b")
    folder = os.open(work, FOLDER)
    yield folder
    os.close(folder)


@pytest.mark.parametrize("resolve", WAYS)
@pytest.mark.parametrize(
    ("path", "real"),
    [
        (".", "."),
        ("a/b", "a/b"),
        ("a/./b/", "a/b"),
        ("a/b/..", "a"),
        ("down", "a/b"),
        ("around", "a/b"),
        ("a/back", "a/b"),
        ("a/..", "."),
    ],
)
def test_where_a_path_leads(resolve: Resolve, root: int, path: str, real: str) -> None:
    folder, found = resolve(root, path)
    try:
        assert found == real
        assert os.path.samestat(os.fstat(folder), os.stat(real, dir_fd=root))
    finally:
        os.close(folder)


@pytest.mark.parametrize("resolve", WAYS)
@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("..", errno.EXDEV),
        ("a/../..", errno.EXDEV),
        ("up", errno.EXDEV),
        ("absolute", errno.EXDEV),
        ("circle", errno.ELOOP),
        ("gone", errno.ENOENT),
        ("nowhere", errno.ENOENT),
        ("file", errno.ENOTDIR),
    ],
)
def test_what_is_not_opened(resolve: Resolve, root: int, path: str, number: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError) as refused:
        resolve(root, path)
    assert refused.value.errno == number
    assert len(os.listdir("/proc/self/fd")) == before, "nothing stays open"


def test_a_long_chain_of_links_ends(root: int, tmp_path: Path) -> None:
    for number in range(MOST_LINKS + 1):
        (tmp_path / "work" / f"l{number}").symlink_to(f"l{number + 1}" if number < MOST_LINKS else "a")
    with pytest.raises(OSError) as refused:
        open_by_steps(root, "l0")
    assert refused.value.errno == errno.ELOOP


def test_only_a_link_has_a_target(root: int) -> None:
    assert read_link_target(root, "down") == "a/b"
    assert read_link_target(root, "file") is None
    assert read_link_target(root, "nowhere") is None
    with pytest.raises(OSError, match="absolute"):
        read_link_target(root, "absolute")
