"""Does the answer to a slash command say what holds, what is to come, and what was not understood?"""

import pytest

from mcp_server.calls.slash import (
    AFTERWARDS,
    MAX_REASON_CHARS,
    UNCHOSEN,
    build_argument,
    build_user_messages,
    collect_words,
    describe_change,
    describe_missing_word,
    describe_posture,
    describe_stop_answers,
    find_typed_reason,
    format_reason,
    format_widening_question,
)
from mcp_server.calls.stops import StopAnswers
from mcp_server.model.posture import ChangeScope, Posture, PostureChange, PostureChoice, Profile, WorkMode


def test_words_are_one_line_however_a_host_splits_them() -> None:
    whole = ["plan", "next-milestone", "--profile", "normal"]
    assert collect_words({"value": "plan", "scope": "next-milestone", "options": "--profile normal"}) == whole
    assert collect_words({"value": "plan next-milestone --profile normal"}) == whole
    assert collect_words({}) == []


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


def test_what_holds_and_what_is_to_come_are_said() -> None:
    waiting = PostureChange("c1", {"profile": Profile.TRUSTED}, ChangeScope.NEXT_MILESTONE)
    text = describe_posture(Posture(work_mode=WorkMode.PLAN), PostureChoice(waiting=(waiting,)))
    assert "plan" in text.splitlines()[0]
    assert text.splitlines()[-1].startswith("Pending: profile trusted")
    assert text.endswith("(c1)")


@pytest.mark.parametrize(("chosen", "end"), [(True, AFTERWARDS), (False, UNCHOSEN)])
def test_what_nobody_chose_yet_is_not_called_a_choice(chosen: bool, end: str) -> None:
    assert describe_change("Done.", Posture(), None, chosen).splitlines()[-1] == end


def test_only_what_widens_is_asked_about() -> None:
    change = PostureChange("c1", {"profile": Profile.TRUSTED, "work_mode": WorkMode.PLAN})
    question = format_widening_question(Posture(profile=Profile.NORMAL), change)
    assert "profile from normal to trusted" in question
    assert "work mode" not in question


def test_what_a_stop_came_to_is_said_by_kind() -> None:
    assert describe_stop_answers(StopAnswers()) == ""
    text = describe_stop_answers(StopAnswers(ended=("`bash`", "`wait`"), silent=("4711",)))
    assert text.startswith(" Ended: `bash`; `wait`.")
    assert text.endswith(": 4711.")


def test_an_argument_completes_what_it_knows() -> None:
    values = build_argument("scope", "when", ("now", "next")).values
    assert values is not None
    assert values("ne") == ["next"]
    (message,) = build_user_messages("hello")
    assert (message["role"], message["content"]) == ("user", {"type": "text", "text": "hello"})
