"""Does every mode come within what a host shows, and the whole within what it takes?"""

import pytest

from mcp_server.model.menus import Menus, Mode
from mcp_server.wire.instructions import (
    MAX_BYTES,
    SHOWN_OF_A_DESCRIPTION,
    SHOWN_OF_INSTRUCTIONS,
    cut_to_limit,
    describe_menu_enter,
    format_instructions,
    format_mode_words,
)
from tests.config.samples import opened


def mode(name: str, *triggers: str) -> Mode:
    return Mode(name, name.title(), "You do.", "Done.", "One tool.", "to do it", "Be brief.", ("Read",), triggers)


MENUS = Menus((mode("swe", "code", "bug", "x" * 300), mode("data", "file")))


@pytest.mark.parametrize(
    ("most", "words"),
    [(10, "swe, data."), (20, "swe (code), data."), (40, "swe (code, bug), data (file).")],
)
def test_the_names_come_first_and_then_as_many_words_as_fit(most: int, words: str) -> None:
    assert format_mode_words(MENUS, most) == words


def test_every_shipped_mode_is_named_in_what_every_host_shows() -> None:
    menus = opened().menus
    text = format_instructions("head", "tail", menus, None)
    entering = describe_menu_enter("Enter a mode: ", menus)
    for one in menus:
        assert one.name in text[:SHOWN_OF_INSTRUCTIONS]
        assert one.name in entering[:SHOWN_OF_A_DESCRIPTION]
    assert len(text.encode()) <= MAX_BYTES
    assert text.endswith("\ntail")


def test_a_place_with_one_mode_speaks_of_that_alone() -> None:
    text = format_instructions("head", "tail", MENUS, MENUS.modes[0])
    assert text.startswith("Swe. You do.")
    assert "data" not in text
    assert text.endswith("Tools: Read.")


def test_no_character_is_cut_in_two() -> None:
    assert cut_to_limit("short") == "short"
    cut = cut_to_limit("é" * MAX_BYTES)
    assert len(cut.encode()) <= MAX_BYTES
    assert cut.rstrip("…") == "é" * (len(cut) - 1)
