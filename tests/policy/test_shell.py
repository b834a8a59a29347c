"""Is a shell line read as it runs: every command of it found, and one that is not plain never taken for plain?"""

from collections.abc import Mapping
from typing import Any

import pytest

from mcp_server.policy.shell_reader import LONGEST, read_plain_words, read_shell_line
from tests.policy.world import spoken, table


@pytest.mark.parametrize("case", table("shell_lines"), ids=lambda case: spoken(repr(case["line"])))
def test_reviewed_lines(case: Mapping[str, Any]) -> None:
    line = read_shell_line(case["line"])
    if case.get("unreadable"):
        assert line is None
        assert read_plain_words(case["line"]) is None
        return
    assert line is not None
    assert [list(command) for command in line.commands] == case["runs"]
    assert line.plain is case["plain"]
    assert read_plain_words(case["line"]) == (tuple(case["runs"][0]) if case["plain"] else None)


def test_a_line_may_be_long_but_not_without_end() -> None:
    assert read_shell_line("a" * LONGEST) is not None
    assert read_shell_line("a" * (LONGEST + 1)) is None


def test_so_many_words_behind_a_wrapper_are_looked_at() -> None:
    line = read_shell_line("xargs " + " ".join(f"w{number}" for number in range(100)))
    assert line is not None
    assert len(line.commands) == 1 + 64
    assert line.commands[-1][0] == "w63"


def evaluated(depth: int) -> str:
    line = "ls"
    for _ in range(depth):
        line = "eval '" + line.replace("'", "'\\''") + "'"
    return line


@pytest.mark.parametrize(("depth", "readable"), [(7, True), (8, True), (9, False)])
def test_shells_within_shells_end_at_a_depth(depth: int, readable: bool) -> None:
    line = read_shell_line(evaluated(depth))
    assert (line is not None) is readable
    assert line is None or line.commands[-1] == ("ls",)
