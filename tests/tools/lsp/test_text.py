"""Do a server's places and a reader's places mean the same character?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.lsp.text import ENCODINGS, DocumentText, count_units, find_name_start, find_occurrences, format_shown_line

TEXTS = st.text(st.sampled_from("ab_ é😀\t\r\n"), max_size=40)


@given(TEXTS, st.data())
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_there_and_back(encoding: str, text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    if at and text[at - 1 : at + 1] == "\r\n":
        at += 1  # in the middle of a line end is no place
    held = DocumentText(text)
    found = held.offset_from_position(held.to_server_position(at, encoding), encoding)
    # What comes behind a line's last character, up to the next line, is all the line's end.
    assert found == at


@given(TEXTS)
def test_lines_are_counted_as_they_are_read(text: str) -> None:
    held = DocumentText(text)
    lines = text.split("\n")
    assert held.line_count == len(lines) - (lines[-1] == "")
    for number in range(1, held.line_count + 1):
        assert held.get_line(number) == lines[number - 1].removesuffix("\r")
        start, stop = held.get_line_bounds(number)
        assert held.to_line_column(start) == (number, 1)
        assert text[start:stop] == held.get_line(number)


def test_columns_in_every_encoding() -> None:
    text = DocumentText("a\r\né😀name\r\n")
    at = text.text.index("name")
    assert [text.to_server_position(at, encoding)["character"] for encoding in ENCODINGS] == [6, 3, 2]
    assert text.to_line_column(at) == (2, 3)
    for encoding, character in zip(ENCODINGS, (6, 3, 2), strict=True):
        assert text.offset_from_position({"line": 1, "character": character}, encoding) == at


@pytest.mark.parametrize(("encoding", "middle"), [("utf-8", 3), ("utf-8", 4), ("utf-8", 5), ("utf-16", 2)])
def test_the_middle_of_a_character_is_its_beginning(encoding: str, middle: int) -> None:
    assert DocumentText("é😀name").offset_from_position({"line": 0, "character": middle}, encoding) == 1


@pytest.mark.parametrize(
    ("position", "offset"),
    [
        ({"line": 0, "character": 99}, 3),
        ({"line": 1, "character": 99}, 8),
        ({"line": 0, "character": -1}, 0),
        ({"line": 2, "character": 0}, 9),
        ({"line": 3, "character": 0}, None),
        ({"line": -1, "character": 0}, None),
        ({"line": True, "character": 0}, None),
        ({"line": "0", "character": 0}, None),
        ({"line": 0}, None),
        ({}, None),
    ],
)
def test_places_that_are_none(position: dict[str, object], offset: int | None) -> None:
    assert DocumentText("abc\ndefg\n").offset_from_position(position, "utf-16") == offset


def test_a_lone_carriage_return_ends_a_line_for_the_server_alone() -> None:
    text = DocumentText("one\rtwo\nthree")
    assert text.to_server_position(4, "utf-16") == {"line": 1, "character": 0}
    assert text.to_line_column(4) == (1, 5)
    assert text.line_count == 2


@pytest.mark.parametrize(
    ("line", "symbol", "found"),
    [
        ("names = name", "name", [8]),
        ("names", "name", [0]),
        ("x.y + x.yy", "x.y", [0]),
        ("a+b", "+", [1]),
        ("nothing", "name", []),
        ("größe = größer", "größe", [0]),
    ],
)
def test_whole_words_come_first(line: str, symbol: str, found: list[int]) -> None:
    assert list(find_occurrences(line, symbol)) == found


def test_the_last_name_is_the_one_that_is_meant() -> None:
    assert find_name_start("order.total") == 6
    assert find_name_start("Order::total()") == 7
    assert find_name_start("total") == 0
    assert find_name_start("+") == 0


@given(st.text(), st.sampled_from(ENCODINGS))
def test_units_are_what_the_encoding_takes(text: str, encoding: str) -> None:
    wide = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding]
    assert count_units(text, encoding) == len(text.encode(wide[0])) // wide[1]


def test_a_long_line_is_cut_and_what_hurts_a_terminal_is_seen() -> None:
    assert format_shown_line("a\x1b[2Jb\r\n") == "a\\x1b[2Jb"
    assert format_shown_line("x" * 301) == "x" * 300 + "… [this line has 301 characters]"
