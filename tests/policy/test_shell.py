"""Is a shell line judged as it runs: every command of it found, and one that is not plain never taken for plain?"""

from collections.abc import Mapping
from typing import Any

import pytest

from mcp_server.policy.shell import (
    MAX_STARTS,
    compile_command_pattern,
    find_pattern_program,
    list_commands,
    list_plain_words,
)
from tests.policy.world import spoken, table
from tools.catalog import READ_LINE


@pytest.mark.parametrize("case", table("shell_lines"), ids=lambda case: spoken(repr(case["line"])))
def test_reviewed_lines(case: Mapping[str, Any]) -> None:
    commands, line = list_commands(case["line"], READ_LINE), READ_LINE(case["line"])
    if case.get("unreadable"):
        assert commands is None
        return
    assert commands is not None
    assert [list(command) for command in commands] == case["runs"]
    assert list_plain_words(line) == (tuple(case["runs"][0]) if case["plain"] else None)


def test_so_many_words_behind_a_wrapper_are_looked_at() -> None:
    commands = list_commands("xargs " + " ".join(f"w{number}" for number in range(100)), READ_LINE)
    assert commands is not None
    assert len(commands) == 1 + MAX_STARTS
    assert commands[-1][0] == f"w{MAX_STARTS - 1}"


@pytest.mark.parametrize(("depth", "readable"), [(7, True), (8, True), (9, False)])
def test_shells_within_shells_end_at_a_depth(depth: int, readable: bool) -> None:
    commands = list_commands("eval " * depth + "ls", READ_LINE)
    assert (commands is not None) is readable
    assert commands is None or commands[-1] == ("ls",)


def test_a_pattern_of_simple_words_needs_no_grammar() -> None:
    """A server whose rules are about commands starts without one."""

    def refuse(_text: str) -> None:
        raise AssertionError("nothing is to be read before a call comes")

    for pattern in ("git push:*", "rm -rf /*", "PYTHONPATH=src pytest"):
        compile_command_pattern(pattern, cautious=True, read=refuse)
        assert find_pattern_program(pattern, refuse) == pattern.split()[0]
