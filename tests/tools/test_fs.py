"""Do the fs_* tools read, list, write, move and delete as they say?"""

import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.results import Code, Done, Problem
from tests.tools.workbench import TOOLS, Workbench
from tools.files.definitions import LINES
from tools.files.lines import LINE_CHARS, MOST_BYTES, PAGE_CHARS
from tools.fs.definitions import PAGE


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    (tmp_path / "outside.txt").write_text("OUTSIDE")
    root = tmp_path / "work"
    root.mkdir()
    return Workbench(root)


def text(bench: Workbench, name: str, yes: bool = False, **arguments: Any) -> str:
    ending = bench.call(name, yes, **arguments)
    assert isinstance(ending, Done), ending
    return ending.text


def code(bench: Workbench, name: str, yes: bool = False, **arguments: Any) -> Code:
    ending = bench.call(name, yes, **arguments)
    assert isinstance(ending, Problem), ending
    return ending.code


# Reading


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


def next_offset(shown: str) -> int | None:
    _, found, rest = shown.rpartition("offset=")
    return int(rest.split(",")[0].split(")")[0]) if found else None


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


# Listing and looking


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


# Changing


def test_data_is_written_and_written_over(bench: Workbench) -> None:
    assert "Created `a/b`: 3 bytes" in text(bench, "fs_write_file", path="a/b", content="one")
    (bench.root / "a" / "b").chmod(0o600)
    assert "6 bytes, 3 before" in text(bench, "fs_write_file", path="a/b", content="AAECAwQF", encoding="base64")
    assert (bench.root / "a" / "b").read_bytes() == bytes(range(6))
    assert (bench.root / "a" / "b").stat().st_mode & 0o777 == 0o600
    assert code(bench, "fs_write_file", path="a/b", content="not base64!", encoding="base64") is Code.INVALID_ARGUMENTS
    assert code(bench, "fs_write_file", path="a/b", content="\ud800") is Code.INVALID_ARGUMENTS
    assert code(bench, "fs_write_file", path="a", content="x") is Code.PATH_REFUSED
    assert (bench.root / "a" / "b").read_bytes() == bytes(range(6))


def test_a_huge_file_is_replaced_without_being_read(bench: Workbench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert "3 bytes" in text(bench, "fs_write_file", path="huge", content="new")


def test_folders_moves_and_deletions(bench: Workbench) -> None:
    assert "exists" in text(bench, "fs_create_directory", path="x/y")
    assert "exists" in text(bench, "fs_create_directory", path="x/y")
    (bench.root / "f").write_text("1")
    (bench.root / "g").write_text("2")
    assert code(bench, "fs_move", source="f", destination="g") is Code.ALREADY_EXISTS
    assert code(bench, "fs_move", source="f", destination="../f") is Code.PATH_REFUSED
    assert "to `x/y/f`" in text(bench, "fs_move", source="f", destination="x/y/f")
    assert code(bench, "fs_move", source="x", destination="node_modules/x") is Code.APPROVAL_REQUIRED
    assert code(bench, "fs_delete", path="g") is Code.APPROVAL_REQUIRED
    told = text(bench, "fs_delete", yes=True, path="g")
    assert Path(told.split("`")[-2]).read_text() == "2"
    assert "for good" in text(bench, "fs_delete", yes=True, path="x/y/f", permanent=True)
    assert code(bench, "fs_delete", yes=True, path="x") is Code.ALREADY_EXISTS
    assert code(bench, "fs_delete", yes=True, path=".") is Code.PATH_REFUSED
    assert "Deleted `x/y`" in text(bench, "fs_delete", yes=True, path="x/y")
    assert sorted(path.name for path in bench.root.iterdir()) == [".menugate", "x"]


# The limits of Read


def test_read_stops_at_its_limits_and_names_the_next_call(bench: Workbench) -> None:
    (bench.root / "long").write_text("".join(f"{number}\n" for number in range(1, 5001)))
    shown = text(bench, "Read", file_path="long")
    assert shown.count("\n") == LINES
    assert f'Lines 1-{LINES} of 5000 shown, 8,893 of 23,893 bytes. Next: Read(file_path="long", offset=2001)' in shown
    (bench.root / "wide").write_text(("w" * 1500 + "\n") * 400)
    shown = text(bench, "Read", file_path="wide")
    assert len(shown) < PAGE_CHARS + 300
    assert "Next: Read(" in shown
    assert len(text(bench, "Read", file_path="wide", allow_large=True)) > 3 * PAGE_CHARS
    (bench.root / "line").write_text("é" * 5000 + "\nend\n")
    lines = text(bench, "Read", file_path="line").split("\n")
    assert lines[0] == "1\t" + "é" * LINE_CHARS + "… [this line has 10,000 bytes]"
    assert lines[1] == "2\tend"
    assert "longer than shown" in lines[2]


def test_following_read_shows_every_line_once(bench: Workbench) -> None:
    (bench.root / "f").write_text("".join(f"{number} {'x' * (number % 300)}\n" for number in range(1, 3000)))
    seen: list[int] = []
    offset: int | None = 1
    while offset is not None:
        shown = text(bench, "Read", file_path="f", offset=offset)
        seen += [int(line.split("\t")[0]) for line in shown.split("\n") if not line.startswith("[")]
        offset = next_offset(shown)
    assert seen == list(range(1, 3000))


def test_a_file_too_large_to_open_is_said_to_be(bench: Workbench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    ways: dict[str, dict[str, Any]] = {
        "Read": {},
        "Edit": {"old_string": "a", "new_string": "b"},
        "Write": {"content": "x"},
    }
    for name, more in ways.items():
        assert code(bench, name, file_path="huge", **more) is Code.TOO_LARGE
    (bench.root / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(4_000_000))
    assert code(bench, "Read", file_path="big.png") is Code.TOO_LARGE


def test_replacing_everywhere_stays_within_bounds(bench: Workbench) -> None:
    (bench.root / "f").write_text("a" * 100_000)
    text(bench, "Read", file_path="f")
    more: dict[str, Any] = {"old_string": "a", "new_string": "b" * (MOST_BYTES // 50_000), "replace_all": True}
    assert code(bench, "Edit", file_path="f", **more) is Code.TOO_LARGE


def test_a_rewrite_is_counted_where_a_diff_would_flood(bench: Workbench) -> None:
    (bench.root / "f").write_text("a\n" * 50_000)
    text(bench, "Read", file_path="f", limit=1)
    shown = text(bench, "Write", file_path="f", content="b\n" * 60_000)
    assert "+60000 -50000" in shown
    assert len(shown) < 2_000
    (bench.root / "g").write_text("".join(f"{number}\n" for number in range(1000)))
    text(bench, "Read", file_path="g")
    shown = text(bench, "Write", file_path="g", content="".join(f"new {number}\n" for number in range(1000)))
    assert "more lines of diff]" in shown
    assert len(shown) < 10_000


LETTERS = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", " ", "é", "\\", ".", "\t"]), max_size=30).map("".join)


@given(before=LETTERS, middle=LETTERS, after=LETTERS, new=LETTERS)
def test_an_edit_changes_its_place_and_nothing_else(before: str, middle: str, after: str, new: str) -> None:
    from tools.files.edit import find_matches, replace_matches

    whole = f"{before}<{middle}>{after}".replace("<", "‹").replace(">", "›")
    wanted = f"‹{middle}›"
    assert len(find_matches(whole, wanted).starts) == 1
    changed = replace_matches(whole, wanted, new)
    assert changed.startswith(before)
    assert changed.endswith(after)
    put = changed[len(before) : len(changed) - len(after)]
    assert put.replace("\r\n", "\n") == new.replace("\r\n", "\n")


@given(st.binary(max_size=200))
def test_any_bytes_survive_being_text(data: bytes) -> None:
    from mcp_server.model.text import make_visible
    from tools.files.lines import build_line_page, decode_text, encode_text

    assert encode_text(decode_text(data)) == data
    make_visible(decode_text(data)).encode()
    shown = build_line_page(data)
    assert shown.total == shown.last or not data
    assert shown.bytes == len(data)
