"""Does a server that finds itself out of order narrow what holds, or ask to, and never widen it?"""

import pytest

from mcp_server.calls.health import build_repair_axes, find_pending_repair
from mcp_server.model.posture import ChangeSource, Posture, PostureChange, PostureChoice, Profile, WorkMode


@pytest.mark.parametrize("work", list(WorkMode))
@pytest.mark.parametrize("profile", list(Profile))
def test_repair_never_widens(profile: Profile, work: WorkMode) -> None:
    axes = build_repair_axes(Posture(profile=profile, work_mode=work), widens=False)
    assert ("work_mode" in axes) is (work in (WorkMode.REPAIR, WorkMode.BUILD))
    assert build_repair_axes(Posture(work_mode=work), widens=True)["work_mode"] is WorkMode.REPAIR
    assert profile.covers(Profile(axes.get("profile", profile)))
    assert Profile.NORMAL.covers(Profile(axes.get("profile", profile)))


def test_only_the_doctors_own_open_question_counts_as_asked() -> None:
    asked = PostureChange("c1", {"work_mode": WorkMode.REPAIR}, door=ChangeSource.DOCTOR, unconfirmed=True)
    decided = PostureChange("c2", {"work_mode": WorkMode.REPAIR}, door=ChangeSource.DOCTOR)
    others = PostureChange("c3", {"work_mode": WorkMode.REPAIR}, unconfirmed=True)
    assert find_pending_repair(PostureChoice(waiting=(decided, others, asked))) is asked
    assert find_pending_repair(PostureChoice(waiting=(decided, others))) is None
    assert find_pending_repair(None) is None
