"""Do `/pause`, `/next` and `/stop` act on what was typed, and say what came of it?"""

import pytest

from mcp_server.calls.run_commands import (
    MAX_REASON_CHARS,
    describe_missing_word,
    describe_stop_answers,
    find_typed_reason,
    format_reason,
)
from mcp_server.calls.stops import StopAnswers


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"when": "now"}, ""),
        ({"when": "now", "reason": "it is late"}, "it is late"),
        ({"when": "now it is", "reason": "late"}, "it is late"),
        ({"when": "later"}, None),
        ({"when": ""}, None),
        ({}, ""),
    ],
)
def test_a_reason_follows_its_word_or_there_is_neither(given: dict[str, str], reason: str | None) -> None:
    assert find_typed_reason(given) == reason


def test_a_missing_word_is_named() -> None:
    assert "`/stop now`" in describe_missing_word("/stop")
    assert describe_missing_word("/stop").startswith("Nothing was changed")


def test_a_reason_is_cut() -> None:
    assert format_reason("", "the person paused it") == "the person paused it"
    assert format_reason("enough.", "the person paused it") == "the person paused it: enough"
    assert len(format_reason("x" * 1_000, "it")) < MAX_REASON_CHARS + 10


def test_what_a_stop_came_to_is_said_by_kind() -> None:
    assert describe_stop_answers(StopAnswers()) == ""
    text = describe_stop_answers(StopAnswers(ended=("`bash`", "`wait`"), silent=("4711",)))
    assert text.startswith(" Ended: `bash`; `wait`.")
    assert text.endswith(": 4711.")
