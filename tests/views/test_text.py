"""Can somebody else's words not fake a line of ours, and is a moment readable?"""

import re

from mcp_server.views.text import format_one_line, format_time


def test_words_stay_on_one_line_and_do_nothing_to_the_terminal() -> None:
    shown = format_one_line("a\nb\tc\x1b[2Jd\u202ee")
    assert shown.isprintable()
    assert shown.startswith(r"a\nb\tc")
    assert format_one_line("grüße 🎉") == "grüße 🎉"


def test_a_moment_is_a_date_and_a_time() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", format_time(1_800_000_000 * 10**9))
    assert format_time(1_800_000_000 * 10**9) < format_time(1_800_000_001 * 10**9)
