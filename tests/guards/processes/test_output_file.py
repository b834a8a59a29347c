"""Is what was put aside found again by its place, and is there an end to how much is kept?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards.processes import output_file
from mcp_server.guards.processes.output_file import OutputRoom, OverflowFile

TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=20), max_size=20)


@given(texts=TEXTS, start=st.integers(0, 400), most=st.integers(1, 400))
def test_any_part_of_it_is_as_it_was(texts: list[str], start: int, most: int) -> None:
    whole = "".join(texts)
    aside = OverflowFile(None, OutputRoom())
    for text in texts:
        aside.add(text)
    assert aside.size == len(whole)
    assert aside.read(start, most) == whole[start : start + most]
    aside.close()


def test_it_lies_where_nobody_finds_it_and_gives_its_room_back(tmp_path: Path) -> None:
    room = OutputRoom(100)
    aside = OverflowFile(tmp_path, room)
    aside.add("x" * 60)
    assert list(tmp_path.iterdir()) == []
    assert room.left == 40
    aside.close()
    assert (room.left, aside.read(0, 10)) == (100, "")


@pytest.mark.parametrize(("most", "room"), [(50, 1000), (1000, 50)])
def test_what_has_no_room_is_not_kept_nor_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch, most: int, room: int
) -> None:
    monkeypatch.setattr(output_file, "MAX_BYTES", most)
    aside = OverflowFile(None, OutputRoom(room))
    for text in ("a" * 40, "b" * 20, "c"):
        aside.add(text)
    assert (aside.size, aside.read(0, 100)) == (40, "a" * 40)
    aside.close()
