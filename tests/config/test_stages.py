"""Does each stage allow the effects that it should?"""

from mcp_server.model.posture import Stage, WorkMode
from mcp_server.model.tools import READING, Effect
from tests.config.samples import opened


def test_the_stages_allow_what_the_design_says() -> None:
    stages = opened().stages
    assert set(stages) == set(Stage)
    assert stages[Stage.WARMUP] == stages[Stage.QA_REVIEW] == READING
    assert stages[Stage.ACT] == stages[Stage.TOOL_FOLLOWUP] == stages[Stage.MICRO_STEP] == set(Effect)
    assert stages[Stage.DELIVERY_CHECK] == set()


def test_the_work_modes_allow_what_the_design_says() -> None:
    modes = opened().work_modes
    assert set(modes) == set(WorkMode)
    assert modes[WorkMode.PLAN] == modes[WorkMode.REVIEW] == modes[WorkMode.RESEARCH] == READING
    assert modes[WorkMode.CHAT] == modes[WorkMode.BUILD] == modes[WorkMode.REPAIR] == set(Effect)
