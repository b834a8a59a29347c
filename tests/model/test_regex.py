"""Is a pattern that becomes gigabytes told from one that does not, before it is taken apart?"""

import pytest
import regex

from mcp_server.model.regex import describe_pattern_danger


@pytest.mark.parametrize(
    "pattern",
    [
        "a{3}{3}",
        "[a-f0-9]{40}.*[a-f0-9]{64}",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}",
        r"(?P<year>\d{4}){2}",
        r"\p{L}{300}",
        r"foo\{60000\}{2}",
        r"\(?R",
        "[(?R)]",
        "[]{60000}{60000}]",
        "(?#a{60000}{60000})x",
        "(?:a{1,60000}){,60000}",
        "{{.*}}",
        ")(",
        "",
    ],
)
def test_what_is_small_is_tried(pattern: str) -> None:
    assert describe_pattern_danger(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a{60000}){60000}",
        "(?=x)(?:a{300}){300}",
        "((a{50}){50}){50}",
        "(?<name>[ab]{300,}){300}",
        "(?|a{300}){300}",
        "(?(1)a{300}|b){300}",
        "(?<=a{300}){300}",
        r"[^\]]{300}(?i:a{300}){300}",
        r"\p{(?:a{300}){300}",
        "[[:^alpha:](?:a{300}){300}]",
        "(?V1)[a[b](?:a{300}){300}]",
        "x{1000}" * 100,
        "a{99999999999}",
        "(?:" * 330,
        "(?R)",
        "a(?1)b",
        "a(?+1)(b)",
        "(?P>x)(?P<x>a)",
        "(?&x)(?P<x>a)",
        "(?x)#[\n(?:a{300}){300}",
        "(?x:#[\n)(?:a{300}){300}",
        "(?ix)(?:a{30 0}){300}",
    ],
)
def test_what_becomes_large_is_not(pattern: str) -> None:
    assert describe_pattern_danger(pattern)


def test_the_largest_that_is_tried_is_still_small() -> None:
    pattern = r"(?i)(?:[a-zß]\p{L}){16000}"
    assert describe_pattern_danger(pattern) is None
    assert not regex.compile(pattern).search("a")
