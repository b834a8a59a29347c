"""Is every character that cannot be seen written out, and nothing else?"""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards import sanitizer
from mcp_server.model.text import (
    UNSEEN,
    escape_surrogates,
    find_nearest_name,
    make_visible,
    quote_as_json,
    quote_exactly,
    quote_text,
    shorten_to_line,
    to_one_line,
    to_plain_text,
    to_printable_ascii,
)

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200d"
"""Kept, because it makes one emoji of several; the house takes it out where it does not."""


def test_all_that_is_unseen_is_known() -> None:
    unseen = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in HIDDEN}
    missed = {one for one in unseen if not UNSEEN.match(one)}
    assert missed == {"\t", "\n", JOINERS}


def test_what_is_taken_out_of_text_from_outside_is_unseen() -> None:
    taken = {chr(code) for code in range(sys.maxunicode + 1) if sanitizer.UNSEEN.match(chr(code))}
    assert {one for one in taken if not UNSEEN.match(one)} == set()


@given(st.binary(max_size=200))
def test_any_bytes_can_be_shown(data: bytes) -> None:
    for shown in (to_plain_text(data), to_one_line(data)):
        shown.encode()
        assert not UNSEEN.search(shown)
    assert "\n" not in to_one_line(data)


def test_what_can_be_seen_stays() -> None:
    text = "Grüße, 世界! 👩‍💻 \t→ \n"
    assert to_plain_text(text) == make_visible(text) == escape_surrogates(text) == text
    assert to_plain_text(b"caf\xe9\x1b[0m\xe2\x80\xae") == "caf\\xe9\\x1b[0m\\u{202e}"


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (quote_text("a\x1b`b" + "x" * 60), "`a??b" + "x" * 56 + "…`"),
        (quote_exactly("a\x1b`b"), "`a\\u001b`b`"),
        (quote_as_json('a"\n\u202e\U000e0041'), '"a\\"\\n\\u202e\\udb40\\udc41"'),
        (make_visible("\x1b\u202e\udc80"), "\\x1b\u202e\\x80"),
        (escape_surrogates("a\ud800"), "a\\ud800"),
        (to_printable_ascii("é\x1b" + "x" * 300), "??" + "x" * 198),
        (shorten_to_line("a\n  b c", 4), "a b…"),
        (find_nearest_name("raed", ["Read", "Edit"]), "Read"),
        (find_nearest_name("zebra", ["Read", "Edit"]), None),
    ],
)
def test_each_way_has_its_reader(shown: str | None, wanted: str | None) -> None:
    assert shown == wanted
