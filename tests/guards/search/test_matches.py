"""Is a page of what was found cut where it should be, in the order of the folders?"""

from typing import Any

import pytest

from mcp_server.guards.search.matches import (
    GAP,
    MAX_LINE_CHARS,
    MatchLine,
    SearchDeadline,
    SearchMatches,
    build_search_result,
    make_path_sort_key,
    shorten_line,
)
from mcp_server.model.files import Search

MATCHES = SearchMatches(
    counts={"b.py": 1, "a/z.py": 2, "a.py": 1},
    lines=[
        MatchLine("b.py", 3, "x"),
        MatchLine("a/z.py", 1, "x"),
        MatchLine("a/z.py", 2, "y", matched=False),
        MatchLine("a/z.py", 9, "x"),
        MatchLine("a.py", 5, "x"),
    ],
)


def test_files_of_a_folder_stay_together() -> None:
    paths = ["a.py", "a/z.py", "a-b/c.py", "a/b/c.py", "b.py"]
    assert sorted(paths, key=make_path_sort_key) == ["a/b/c.py", "a/z.py", "a-b/c.py", "a.py", "b.py"]


@pytest.mark.parametrize(
    ("search", "lines", "total"),
    [
        ({"want": "files"}, ("a/z.py", "a.py", "b.py"), 3),
        ({"want": "files", "offset": 1, "limit": 1}, ("a.py",), 3),
        ({"want": "count"}, ("a/z.py:2", "a.py:1", "b.py:1"), 3),
        ({"want": "content", "limit": 2}, ("a/z.py:1:x", "a/z.py-2-y"), 5),
        ({"want": "content", "offset": 3, "line_numbers": False}, ("a.py:x", "b.py:x"), 5),
    ],
)
def test_a_page_of_it(search: dict[str, Any], lines: tuple[str, ...], total: int) -> None:
    result = build_search_result(MATCHES, Search("x", **search))
    assert (result.lines, result.total) == (lines, total)


def test_parts_that_do_not_touch_are_set_apart_where_context_is_shown() -> None:
    result = build_search_result(MATCHES, Search("x", want="content", after=1))
    assert result.lines == ("a/z.py:1:x", "a/z.py-2-y", GAP, "a/z.py:9:x", GAP, "a.py:5:x", GAP, "b.py:3:x")


def test_a_name_that_is_no_text_can_be_sent() -> None:
    matches = SearchMatches(counts={"caf\udce9": 1}, lines=[MatchLine("caf\udce9", 1, "\udce9")])
    for want in ("files", "count", "content"):
        "".join(build_search_result(matches, Search("x", want=want)).lines).encode()


def test_a_long_line_is_cut() -> None:
    assert shorten_line("x" * MAX_LINE_CHARS) == "x" * MAX_LINE_CHARS
    assert shorten_line("x" * (MAX_LINE_CHARS + 1)).endswith("[... line cut]")


def test_time_is_over_when_it_is() -> None:
    now = 10.0
    deadline = SearchDeadline(5, lambda: now)
    assert not deadline.is_over
    now = 15.0
    assert deadline.is_over
