"""Does the answer to a slash command say what holds, what is to come, and what was not understood?"""

import pytest

from mcp_server.calls.slash import (
    AFTERWARDS,
    UNCHOSEN,
    build_argument,
    build_user_messages,
    collect_words,
    describe_change,
    describe_posture,
    format_widening_question,
)
from mcp_server.model.posture import ChangeScope, Posture, PostureChange, PostureChoice, Profile, WorkMode


def test_words_are_one_line_however_a_host_splits_them() -> None:
    whole = ["plan", "next-milestone", "--profile", "normal"]
    assert collect_words({"value": "plan", "scope": "next-milestone", "options": "--profile normal"}) == whole
    assert collect_words({"value": "plan next-milestone --profile normal"}) == whole
    assert collect_words({}) == []


def test_what_holds_and_what_is_to_come_are_said() -> None:
    waiting = PostureChange("c1", {"profile": Profile.TRUSTED}, ChangeScope.NEXT_MILESTONE)
    text = describe_posture(Posture(work_mode=WorkMode.PLAN), PostureChoice(waiting=(waiting,)))
    assert "plan" in text.splitlines()[0]
    assert text.splitlines()[-1].startswith("Pending: profile trusted")
    assert text.endswith("(c1)")


@pytest.mark.parametrize(("chosen", "end"), [(True, AFTERWARDS), (False, UNCHOSEN)])
def test_what_nobody_chose_yet_is_not_called_a_choice(chosen: bool, end: str) -> None:
    assert describe_change("Done.", Posture(), None, chosen).splitlines()[-1] == end


def test_the_question_shows_all_that_changes_and_from_what() -> None:
    change = PostureChange("c1", {"profile": Profile.TRUSTED, "work_mode": WorkMode.PLAN})
    tried = Posture(profile=Profile.TRUSTED)
    question = format_widening_question(tried, Posture(profile=Profile.NORMAL), change)
    assert "work mode from build to plan, profile from normal to trusted (now)" in question
    kept = format_widening_question(tried, tried, PostureChange("c1", {"profile": Profile.TRUSTED}))
    assert "profile trusted, instead of a narrower value that is pending (now)" in kept


def test_an_argument_completes_what_it_knows() -> None:
    values = build_argument("scope", "when", ("now", "next")).values
    assert values is not None
    assert values("ne") == ["next"]
    (message,) = build_user_messages("hello")
    assert (message["role"], message["content"]) == ("user", {"type": "text", "text": "hello"})
