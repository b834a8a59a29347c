"""What does each stage allow, and is there a way on from everywhere? Over the whole graph of states."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.config.load import Configuration, load_configuration
from mcp_server.model.menus import CARRIERS, META_TOOLS
from mcp_server.model.policy import Budget, BudgetUse, Call, Policy, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, RunControl, Stage, WorkMode
from mcp_server.model.results import Code
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.model.tools import READING, Effect, Tool
from mcp_server.policy.decision import decide, list_visible_tools
from mcp_server.policy.stages import (
    FINAL,
    build_stage_policy,
    get_current_stage,
    get_next_stage,
    is_reasoning_on,
)
from mcp_server.settings import read_settings
from tests.policy.world import EFFECTS, example, policy, tools
from tests.sizes import sample, scale

HOLDS = (None, *(Hold(by, "for a reason") for by in Holder))
ACTING = (Stage.ACT, Stage.TOOL_FOLLOWUP, Stage.MICRO_STEP)


@pytest.mark.parametrize(
    ("stage", "ai", "reasoning", "effects", "duty"),
    [
        (Stage.WARMUP, "agent", True, "reading", "macro"),
        (Stage.WARMUP, "agent", False, "reading", "none"),
        (Stage.ACT, "agent", True, "all", "none"),
        (Stage.ACT, "chat", True, "reading", "none"),
        (Stage.TOOL_FOLLOWUP, "agent", True, "all", "none"),
        (Stage.MICRO_STEP, "agent", True, "reading", "micro"),
        (Stage.MICRO_STEP, "agent", False, "all", "none"),
        (Stage.MICRO_STEP, "chat", True, "reading", "none"),
        (Stage.DELIVERY_CHECK, "agent", True, "none", "none"),
        (Stage.QA_REVIEW, "agent", True, "reading", "micro"),
        (Stage.QA_REVIEW, "agent", False, "reading", "none"),
        (None, "agent", True, "reading", "none"),
        (None, "chat", False, "reading", "none"),
    ],
)
def test_the_stages_policy(stage: Stage | None, ai: str, reasoning: bool, effects: str, duty: str) -> None:
    got = build_stage_policy(stage, AiMode(ai), reasoning, EFFECTS)
    wanted: Mapping[str, frozenset[Effect]] = {"reading": READING, "all": frozenset(Effect), "none": frozenset()}
    assert got.effects == wanted[effects]
    assert got.duty == duty


def test_no_stage_of_chat_ever_changes_anything() -> None:
    for stage, reasoning in product((None, *Stage), (True, False)):
        assert build_stage_policy(stage, AiMode.CHAT, reasoning, EFFECTS).effects <= READING


def test_a_stage_that_is_in_no_table_only_reads() -> None:
    assert build_stage_policy(Stage.ACT, AiMode.AGENT, False, {}).effects == READING


def test_a_work_mode_nobody_knows_only_reads() -> None:
    session, posture, known = Session("s", "p", mode="swe", stage=Stage.ACT), Posture(WorkMode.BUILD), policy()
    writing, reading = Call("Write", example("Write")), Call("Read", example("Read"))
    assert decide(tools()["Write"], writing, session, posture, known).is_allowed
    unknown = replace(known, work_modes={})
    refused = decide(tools()["Write"], writing, session, posture, unknown)
    assert (refused.verdict, refused.code) == (Verdict.DENY, Code.READ_ONLY_WORK)
    assert decide(tools()["Read"], reading, session, posture, unknown).is_allowed


@pytest.mark.parametrize(
    ("stage", "reasoned", "reasoning", "now"),
    [
        (Stage.ACT, False, False, Stage.ACT),
        (Stage.ACT, False, True, Stage.WARMUP),
        (Stage.ACT, True, True, Stage.ACT),
        (Stage.MICRO_STEP, True, True, Stage.MICRO_STEP),
        (Stage.MICRO_STEP, True, False, Stage.ACT),
        (Stage.TOOL_FOLLOWUP, True, False, Stage.ACT),
        (Stage.MICRO_STEP, False, True, Stage.WARMUP),
        (Stage.QA_REVIEW, False, True, Stage.QA_REVIEW),
        (Stage.DELIVERY_CHECK, False, False, Stage.DELIVERY_CHECK),
        (None, False, True, None),
    ],
)
def test_the_stage_follows_from_the_persons_switch(
    stage: Stage | None, reasoned: bool, reasoning: bool, now: Stage | None
) -> None:
    session = Session("s", "p", stage=stage, reasoned=reasoned)
    assert get_current_stage(session, Posture(reasoning=reasoning)) is now


def test_where_a_call_leads() -> None:
    assert get_next_stage(Stage.ACT, changed=True, failed=False) is Stage.MICRO_STEP
    assert get_next_stage(Stage.ACT, changed=False, failed=False) is Stage.ACT
    assert get_next_stage(Stage.ACT, changed=True, failed=True) is Stage.TOOL_FOLLOWUP
    assert get_next_stage(Stage.TOOL_FOLLOWUP, changed=False, failed=False) is Stage.ACT
    for stage in (None, Stage.WARMUP, Stage.MICRO_STEP, *FINAL):
        assert get_next_stage(stage, changed=True, failed=True) is stage


# Every state there is.


def sessions() -> Iterator[Session]:
    for stage, reasoned, held in product((None, *Stage), (False, True), HOLDS):
        yield Session("s", "p", "swe", stage, run="r", reasoned=reasoned, held=held)


def postures() -> Iterator[Posture]:
    for work, control, profile, ai, reasoning in product(WorkMode, RunControl, Profile, AiMode, (False, True)):
        yield Posture(work_mode=work, run_control=control, profile=profile, ai_mode=ai, reasoning=reasoning)


def allowed(name: str, session: Session, posture: Posture, house: Policy) -> bool:
    call = Call(name, example(name) or {"content": "x"} if name == "think" else example(name))
    return decide(tools()[name], call, session, posture, house).verdict is not Verdict.DENY


def led_on(session: Session, posture: Posture) -> Session:
    """What the meta-tools make of a state: a thought first, where one is due, else the end of the run."""
    stage = get_current_stage(session, posture)
    if stage is None or stage in FINAL:
        return replace(session, run="next", stage=Stage.ACT, reasoned=False)
    return replace(session, stage=Stage.ACT, reasoned=True)


def next_said(session: Session) -> Session:
    """What `menugate next` makes of it."""
    return replace(session, held=None)


@pytest.mark.heavy
def test_no_state_is_a_dead_end() -> None:
    """From every state the agent's own thoughts and `complete`, and the person's `next`, lead to where tools run."""
    house, every = policy(), list(product(sessions(), postures()))
    assert len(every) == 7 * 2 * 4 * 6 * 3 * 4 * 2 * 2
    for session, posture in sample(every):
        assert all(allowed(name, session, posture, house) for name in ("think", "complete", "menu_enter"))
        state = session
        for _ in range(2):
            state = led_on(state, posture)
        assert get_current_stage(state, posture) is Stage.ACT or not is_reasoning_on(posture)
        assert allowed("Read", next_said(state), posture, house), (session, posture)
        work = posture.work_mode not in (WorkMode.PLAN, WorkMode.RESEARCH, WorkMode.REVIEW)
        if work and posture.ai_mode is AiMode.AGENT and posture.profile.covers(Profile.NORMAL):
            assert allowed("Edit", next_said(state), posture, house), (session, posture)


def test_a_pause_hides_and_refuses_everything_but_the_meta_tools() -> None:
    house = policy()
    for by in Holder:
        session = Session("s", "p", "swe", run="r", held=Hold(by, "lunch"))
        posture = Posture(run_control=RunControl.ASSISTED)
        assert list_visible_tools(session, posture, house) == META_TOOLS
        refused = decide(tools()["Read"], Call("Read", example("Read")), session, posture, house)
        assert (refused.code, refused.layer) == (Code.RUN_PAUSED, "budget")
        assert "lunch" in refused.reason
        assert "menugate next" in refused.way_out
        assert allowed("complete", session, posture, house)


def test_what_a_pause_is_about() -> None:
    house = policy()
    unit = Session("s", "p", "swe", run="r", held=Hold(Holder.UNIT, "done"))
    assert not allowed("Read", unit, Posture(run_control=RunControl.ASSISTED), house)
    assert allowed("Read", unit, Posture(run_control=RunControl.AUTONOMOUS), house)
    budget = replace(unit, held=Hold(Holder.BUDGET, "spent", run="r"))
    assert not allowed("Read", budget, Posture(), house)
    assert allowed("Read", replace(budget, run="the next one"), Posture(), house)


def test_a_spent_budget_leaves_the_way_out() -> None:
    house = policy(budget=Budget(calls=1))
    call = Call("Read", example("Read"), spent=BudgetUse(calls=1))
    got = decide(tools()["Read"], call, Session("s", "p", "swe"), Posture(), house)
    assert got.code is Code.BUDGET_SPENT
    assert "complete" in got.way_out
    assert "menugate next" in got.way_out


# Every tool that is shipped.


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    found = load_configuration(read_settings({"workspace": str(tmp_path_factory.mktemp("work"))}, {}), bare=True)
    assert isinstance(found, Configuration)
    return found


def fitting(tool: Tool) -> dict[str, object]:
    """Arguments that fit, as plain as they can be."""
    return {name: plain_value(tool.arguments["properties"][name]) for name in tool.arguments.get("required", ())}


def plain_value(schema: Mapping[str, object]) -> object:
    choices = cast(list[object], schema.get("enum", []))
    if choices:
        return choices[0]
    plain: dict[str, object] = {"string": "x", "integer": 1, "number": 1, "boolean": False}
    return plain.get(str(schema["type"]), [] if schema["type"] == "array" else {})


@pytest.mark.heavy
def test_every_registered_tool_is_decided_everywhere(shipped: Configuration) -> None:
    """Each tool in its mode: 4 profiles, 6 stages, 6 work modes, chat and agent, with and without reasoning, paused and
    not: hidden exactly where its plainest call is refused, and the six always there."""
    house, count = shipped.policy, 0
    arguments = {name: fitting(tool) for name, tool in house.tools.items()}
    every = list(product(Profile, Stage, WorkMode, AiMode, (False, True), (None, Hold(Holder.PERSON, "lunch"))))
    assert len(every) == 4 * 6 * 6 * 2 * 2 * 2
    looked_at = list(sample(every))
    for profile, stage, work, ai, reasoning, held in looked_at:
        posture = Posture(work_mode=work, profile=profile, ai_mode=ai, reasoning=reasoning)
        for mode in house.menus:
            session = Session("s", "p", mode.name, stage, run="r", reasoned=True, held=held)
            shown = set(list_visible_tools(session, posture, house)) | set(CARRIERS)
            assert shown.issuperset(META_TOOLS)
            for name in (*META_TOOLS, *CARRIERS, *mode.tools):
                tool = house.tools[name]
                got = decide(tool, Call(name, arguments[name]), session, posture, house)
                refused = got.verdict is Verdict.DENY
                assert refused == (name not in shown), (name, session, posture, got)
                assert not refused or (got.layer and got.code and got.reason and got.way_out)
                assert not (ai is AiMode.CHAT and not refused and tool.effect not in READING and not tool.meta)
                count += 1
    assert count >= len(looked_at) * (len(house.tools) - 8)


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(st.sampled_from((None, *Stage)), st.booleans(), st.sampled_from(HOLDS), st.booleans(), st.sampled_from(AiMode))
def test_reasoning_and_a_pause_only_narrow(
    stage: Stage | None, reasoned: bool, held: Hold | None, reasoning: bool, ai: AiMode
) -> None:
    house = policy()
    plain = Session("s", "p", "swe", stage, run="r")
    full = replace(plain, reasoned=reasoned, held=held)
    wide = set(list_visible_tools(plain, Posture(ai_mode=ai), house))
    assert set(list_visible_tools(full, Posture(ai_mode=ai, reasoning=reasoning), house)) <= wide
