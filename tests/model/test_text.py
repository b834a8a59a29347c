"""Is every character that cannot be seen written out, and nothing else?"""

import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards import sanitizer
from mcp_server.model.text import (
    HARMFUL,
    escape_for_model,
    escape_for_person,
    find_nearest_name,
    quote_as_json,
    quote_exactly,
    quote_text,
    shorten_to_line,
    to_one_line,
    to_printable_ascii,
)

HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
NOTHING_TO_SEE = re.compile(
    "OBJECT REPL|NULL NOTE|VARIATION SEL|INVISIBLE|ZERO WIDTH|PLANE SPACE|(BLANK|[A-Z]{5} FILLER)$"
)
EVERYTHING = [chr(code) for code in range(sys.maxunicode + 1)]


def test_a_model_gets_everything_but_controls_and_halves() -> None:
    escaped = {one for one in EVERYTHING if escape_for_model(one) != one}
    assert escaped == {one for one in EVERYTHING if unicodedata.category(one) in ("Cc", "Cs")} - {"\t", "\n"}
    assert escaped == {one for one in EVERYTHING if HARMFUL.match(one)}


def test_a_person_sees_everything() -> None:
    """Controls, what turns the direction, what has no width, and separators that look like a space or a line end."""
    shown = {one for one in EVERYTHING if escape_for_person(one) == one}
    assert {one for one in shown if unicodedata.category(one) in {*HIDDEN, "Zs"}} == {"\t", "\n", " "}
    assert not {one for one in shown if sanitizer.UNSEEN.match(one)}
    unseen = {one for one in shown if NOTHING_TO_SEE.search(unicodedata.name(one, ""))}
    assert {unicodedata.name(one) for one in unseen} == {"MANICHAEAN PUNCTUATION LINE FILLER"} & {
        unicodedata.name(one) for one in unseen
    }
    assert not {"\t", "\n"} & {one for one in EVERYTHING if escape_for_person(one, one_line=True) == one}


@given(st.text(max_size=200))
def test_what_a_person_sees_can_be_read_back(text: str) -> None:
    assert json.loads(quote_as_json(text)) == text


@given(st.binary(max_size=200))
def test_any_bytes_can_be_shown(data: bytes) -> None:
    for shown in (escape_for_model(data), to_one_line(data)):
        shown.encode()
        assert not HARMFUL.search(shown)
    assert "\n" not in to_one_line(data)


def test_what_a_model_may_type_again_stays() -> None:
    text = "Grüße, 世界! 👩‍💻 \t→ \n क्‍ष می‌خواهم ‏‮"
    assert escape_for_model(text) == text
    assert escape_for_model(b"caf\xe9\x1b[0m") == "caf\\xe9\\x1b[0m"
    assert escape_for_model("a\nb\tc", one_line=True) == "a\\nb\\tc"


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (quote_text("a\x1b`b" + "x" * 60), "`a\\x1b?b" + "x" * 56 + "…`"),
        (quote_exactly("a\x1b`b"), "`a\\u001b`b`"),
        (quote_as_json('a"\n\u202e\U000e0041'), '"a\\"\\n\\u202e\\udb40\\udc41"'),
        (escape_for_model("\x1b\u202e\udc80"), "\\x1b\u202e\\x80"),
        (escape_for_model("a\ud800"), "a\\ud800"),
        (escape_for_person("a\x1b\u202e\u2028\u200b\u3000\nb"), "a\\u001b\\u202e\\u2028\\u200b\\u3000\nb"),
        (to_printable_ascii("é\x1b" + "x" * 300), "??" + "x" * 198),
        (shorten_to_line("a\n  b c", 4), "a b…"),
        (find_nearest_name("raed", ["Read", "Edit"]), "Read"),
        (find_nearest_name("zebra", ["Read", "Edit"]), None),
    ],
)
def test_each_way_has_its_reader(shown: str | None, wanted: str | None) -> None:
    assert shown == wanted
