"""Is data read as it is, in parts that make the whole, and is a folder listed in order?"""

import os
from base64 import b64decode, b64encode
from typing import Any

import jsonschema_rs
import pytest

from mcp_server.model.results import Code, Done
from tests.tools.workbench import TOOLS, Workbench, code, next_offset, text
from tools.fs.definitions import PAGE


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, "a\nb\nc\nd\n"),
        ({"head": 2}, "a\nb\n"),
        ({"head": 9}, "a\nb\nc\nd\n"),
        ({"tail": 2}, "c\nd\n"),
        ({"tail": 9}, "a\nb\nc\nd\n"),
        ({"offset": 4}, "c\nd\n"),
        ({"offset": 2, "head": 1}, "b\n"),
        ({"encoding": "base64"}, b64encode(b"a\nb\nc\nd\n").decode()),
        ({"encoding": "base64", "head": 3}, b64encode(b"a\nb").decode()),
        ({"encoding": "base64", "tail": 3}, b64encode(b"\nd\n").decode()),
        ({"encoding": "base64", "offset": 6}, b64encode(b"d\n").decode()),
    ],
)
def test_data_comes_as_it_is(bench: Workbench, arguments: dict[str, Any], shown: str) -> None:
    (bench.root / "f").write_text("a\nb\nc\nd\n")
    assert text(bench, "fs_read_file", path="f", **arguments) == shown


def test_tail_without_a_last_newline(bench: Workbench) -> None:
    (bench.root / "f").write_text("a\nb\nc")
    assert text(bench, "fs_read_file", path="f", tail=2) == "b\nc"


def test_what_is_no_text_is_said_to_be(bench: Workbench) -> None:
    (bench.root / "latin").write_bytes(b"caf\xe9")
    (bench.root / "nul").write_bytes(b"a\0b")
    (bench.root / "empty").write_bytes(b"")
    for name in ("latin", "nul"):
        assert code(bench, "fs_read_file", path=name) is Code.NOT_TEXT
        assert b64decode(text(bench, "fs_read_file", path=name, encoding="base64"))
    assert "is empty" in text(bench, "fs_read_file", path="empty")
    assert text(bench, "fs_read_file", path="empty", encoding="base64") == ""
    assert code(bench, "fs_read_file", path="latin", offset=99) is Code.INVALID_ARGUMENTS
    assert code(bench, "fs_read_file", path="latin", head=1, tail=1) is Code.INVALID_ARGUMENTS
    (bench.root / "escape").write_bytes(b"a\x1b[2Jb\r\n")
    assert text(bench, "fs_read_file", path="escape").startswith("a\\x1b[2Jb\n\n[Control")


@pytest.mark.parametrize("line", ["x" * 79 + "\n", "grüße 🎉\n", "🎉"])
def test_following_the_next_call_gives_the_whole_file(bench: Workbench, line: str) -> None:
    whole = line * (250_000 // len(line.encode()))
    (bench.root / "f").write_text(whole)
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        shown = text(bench, "fs_read_file", path="f", offset=offset)
        offset = next_offset(shown)
        parts.append(shown.rpartition("\n[")[0] if offset is not None else shown)
        assert len(shown.encode()) < PAGE + 200
    assert len(parts) == 3
    assert "".join(parts) == whole


def test_following_it_in_base64_does_too(bench: Workbench) -> None:
    whole = os.urandom(200_000)
    (bench.root / "f").write_bytes(whole)
    got, offset = b"", 0
    while True:
        shown = text(bench, "fs_read_file", path="f", offset=offset, encoding="base64")
        part, _, note = shown.partition("\n")
        got += b64decode(part)
        if not note:
            break
        assert 'encoding="base64"' in note
        offset = next_offset(note) or 0
    assert got == whole


def test_a_part_that_is_less_than_asked_for_says_so(bench: Workbench) -> None:
    (bench.root / "f").write_text("".join(f"line {number}\n" for number in range(50_000)))
    tail = text(bench, "fs_read_file", path="f", tail=40_000)
    assert tail.startswith("[Only the last ")
    assert tail.split("\n")[1].startswith("line ")
    assert tail.endswith("line 49999\n")
    assert next_offset(text(bench, "fs_read_file", path="f", head=40_000)) is not None
    assert next_offset(text(bench, "fs_read_file", path="f", head=3)) is None
    assert text(bench, "fs_read_file", path="f", encoding="base64", tail=400_000).startswith("[Only the last 75,000")
    assert next_offset(text(bench, "fs_read_file", path="f", encoding="base64", head=400_000)) == 75_000


def test_a_folder_is_listed_in_order_and_in_pages(bench: Workbench) -> None:
    for name in ("b.txt", "a/deep/c.txt", "d"):
        (bench.root / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / name).write_text("12345")
    (bench.root / "link").symlink_to("a")
    assert text(bench, "fs_list_directory") == "a/\nb.txt\t5 bytes\nd\t5 bytes\nlink\tlink\n[4 entries.]"
    assert text(bench, "fs_list_directory", depth=3).startswith("a/\na/deep/\na/deep/c.txt\t5 bytes\nb.txt")
    first = text(bench, "fs_list_directory", depth=2, limit=2)
    assert first.endswith('[Entries 1-2 of 5. Next: fs_list_directory(path=".", depth=2, offset=2)]')
    assert text(bench, "fs_list_directory", depth=2, offset=4).endswith("link\tlink\n[The last of 5 entries.]")
    assert code(bench, "fs_list_directory", offset=4) is Code.INVALID_ARGUMENTS
    (bench.root / "empty").mkdir()
    assert "is empty" in text(bench, "fs_list_directory", path="empty")
    assert code(bench, "fs_list_directory", path="b.txt") is Code.NOT_FOUND
    assert code(bench, "fs_list_directory", path="..") is Code.PATH_REFUSED


def test_names_that_are_no_text_can_be_told(bench: Workbench) -> None:
    with open(os.fsencode(bench.root) + b"/caf\xe9\x1b", "w"):
        pass
    assert "caf\\xe9\\x1b" in text(bench, "fs_list_directory")
    assert text(bench, "fs_read_file", path="caf\udce9\x1b").startswith("[`caf\\xe9\\x1b` is empty")


def test_what_a_file_is_is_said_twice_alike(bench: Workbench) -> None:
    (bench.root / "f").write_text("12345")
    (bench.root / "f").chmod(0o640)
    os.utime(bench.root / "f", (0, 86_400))
    ending = bench.call("fs_file_info", path="f")
    assert isinstance(ending, Done)
    assert ending.data
    jsonschema_rs.validate(dict(TOOLS["fs_file_info"].result or {}), dict(ending.data))
    assert ending.text == "path: f\nkind: file\nsize: 5\nmodified: 1970-01-02T00:00:00+00:00\nmode: 0640"
    assert ending.text == "\n".join(f"{key}: {value}" for key, value in ending.data.items())
