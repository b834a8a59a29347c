"""Is every character that cannot be seen written out, and nothing else?"""

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tools.git import escape

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200d"
"""Kept, because it makes one emoji of several; the house takes it out where it does not."""


def test_all_that_is_unseen_is_known() -> None:
    unseen = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in HIDDEN}
    missed = {one for one in unseen if not escape.UNSEEN.match(one)}
    assert missed == {"\t", "\n", JOINERS}


@given(st.binary(max_size=200))
def test_any_bytes_can_be_shown(data: bytes) -> None:
    for shown in (
        escape.to_plain_text(data),
        escape.to_one_line(data),
        escape.to_content_line(data),
        escape.to_visible_path(data),
    ):
        shown.encode()
        assert not escape.UNSEEN.search(shown)
    assert "\n" not in escape.to_one_line(data) + escape.to_visible_path(data)


def test_what_can_be_seen_stays() -> None:
    text = "Grüße, 世界! 👩‍💻 \t→ \n"
    assert escape.to_plain_text(text) == text
    assert escape.to_plain_text(b"caf\xe9\x1b[0m\xe2\x80\xae") == "caf\\xe9\\x1b[0m\\u{202e}"
