"""Is what will happen by itself, or upon a yes, said in words a person reads?"""

from mcp_server.model.posture import (
    ChangeScope,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    TemporaryChange,
    Value,
    WorkMode,
)
from mcp_server.policy.badge import describe_axes, describe_pending_changes


def test_what_is_still_to_come_is_said_in_words() -> None:
    plan: dict[str, Value] = {"profile": Profile.NORMAL, "work_mode": WorkMode.PLAN}
    waiting = (
        PostureChange("c1", plan, ChangeScope.AFTER_CURRENT_TOOL, calls=((7, "p"), (9, "p"))),
        PostureChange("c2", {"reasoning": True}, ChangeScope.NEXT_MILESTONE, session="s1"),
        PostureChange("c3", {"profile": Profile.TRUSTED}, ChangeScope.NOW, session="s1", unconfirmed=True),
    )
    tried = PostureChange("c4", {"profile": Profile.RESTRICTED}, ChangeScope.FOR_NEXT_UNIT, session="s2")
    choice = PostureChoice(waiting=waiting, trials=(TemporaryChange(tried, {"profile": Profile.NORMAL}),))
    assert describe_pending_changes(choice) == [
        (tried, "back to profile normal when the unit ends of session s2"),
        (waiting[0], "work mode plan, profile normal, after-current-tool (call 7, 9)"),
        (waiting[1], "reasoning on, next-milestone of session s1"),
        (waiting[2], "profile trusted, now, once you confirm it"),
    ]
    assert describe_pending_changes(None) == []


def test_every_axis_has_its_word() -> None:
    assert describe_axes(Posture(reasoning=True, work_mode=WorkMode.PLAN)) == {
        "work_mode": "plan",
        "run_control": "autonomous",
        "profile": "normal",
        "model_mode": "smart",
        "ai_mode": "agent",
        "reasoning": "on",
    }
