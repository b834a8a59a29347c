"""Is what waits for the person named, and nothing that does not wait?"""

import pytest

from mcp_server.model.approvals import Approval, ApprovalAnswer, ApprovedCall
from mcp_server.model.posture import Profile, RunControl
from mcp_server.model.sessions import Hold, Holder
from mcp_server.model.tools import Effect
from mcp_server.policy.pending import (
    DAY_NS,
    HOUR_NS,
    MAX_LISTED,
    MINUTE_NS,
    describe_pending,
    format_elapsed_time,
    list_paused_runs,
    list_unanswered_approvals,
)

WANTED = ApprovedCall(
    "me", "s1", "r1", 3, None, 0, "fs_delete", Effect.DESTROY_LOCAL, Profile.TRUSTED, "", lasting=False
)


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (-5 * MINUTE_NS, "for less than a minute"),
        (0, "for less than a minute"),
        (MINUTE_NS - 1, "for less than a minute"),
        (MINUTE_NS, "for 1 minute"),
        (59 * MINUTE_NS, "for 59 minutes"),
        (HOUR_NS, "for 1 hour"),
        (DAY_NS - 1, "for 23 hours"),
        (DAY_NS, "for 1 day"),
        (9 * DAY_NS, "for 9 days"),
    ],
)
def test_how_long_is_said_in_round_words(passed: int, words: str) -> None:
    assert format_elapsed_time(100, 100 + passed) == words


def test_a_finished_unit_pauses_assisted_alone() -> None:
    holds = {
        ("bob", "s2"): Hold(Holder.UNIT, "a unit is done", at=1),
        ("me", "s1"): Hold(Holder.UNIT, "a unit is done", at=2),
        ("me", ""): Hold(Holder.PERSON, "lunch", at=3),
    }
    control = {"me": RunControl.ASSISTED, "bob": RunControl.AUTONOMOUS}
    assert [one.run for one in list_paused_runs(holds, control.__getitem__)] == ["the run of session s1", "every run"]
    assert [one.hold.reason for one in list_paused_runs(holds, lambda _: RunControl.MANUAL)] == ["lunch"]


@pytest.mark.parametrize(
    ("now", "answer", "used", "waits"),
    [
        (10, ApprovalAnswer.OPEN, 0, True),
        (19, ApprovalAnswer.OPEN, 0, True),
        (20, ApprovalAnswer.OPEN, 0, False),
        (9, ApprovalAnswer.OPEN, 0, False),
        (10, ApprovalAnswer.YES, 0, False),
        (10, ApprovalAnswer.YES, 1, False),
        (10, ApprovalAnswer.NO, 0, False),
        (10, ApprovalAnswer.CLOSED, 0, False),
    ],
)
def test_only_what_can_still_be_answered_waits(now: int, answer: ApprovalAnswer, used: int, waits: bool) -> None:
    one = Approval("k7f392qa", WANTED, "may it?", 10, 20, answer, used=used)
    assert (list_unanswered_approvals([one], now) == [one]) is waits


def test_many_are_counted_and_not_named() -> None:
    holds = {("me", f"s{number}"): Hold(Holder.PERSON, "x") for number in range(MAX_LISTED + 2)}
    runs = list_paused_runs(holds, lambda _: None)  # pyright: ignore[reportArgumentType]  # nobody asks
    asked = [Approval(f"q{number}", WANTED, "", 0, 9) for number in range(MAX_LISTED + 3)]
    lines = list(describe_pending(runs, asked, 1))
    assert "Paused: 2 more." in lines
    assert lines[-1] == "Waiting for the user's approval: 3 more, which `menugate approvals` lists."
    assert list(describe_pending([], [], 1)) == []
