"""What does a stage allow and ask for? One function of the stage and of what the person chose, and how a run moves on.

Stages belong to the policy: they narrow what tools do and never change what the person chose. With reasoning on, a run
opens in `warmup` and waits in `micro_step` after every unit; a `think` leads on from both. With reasoning off neither
is ever entered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mcp_server.model.posture import AiMode, Posture, Stage
from mcp_server.model.sessions import Session
from mcp_server.model.tools import READING, Effect

FINAL = frozenset({Stage.DELIVERY_CHECK, Stage.QA_REVIEW})
"""The run is delivered, or being delivered; what follows is another run."""


class StageDuty(StrEnum):
    """What a thought has to hold in a stage."""

    NONE = "none"
    MACRO = "macro"
    """The six headings, once, before the first change."""
    MICRO = "micro"
    """A few points between one unit and the next."""


@dataclass(frozen=True, slots=True)
class StagePolicy:
    effects: frozenset[Effect]
    duty: StageDuty


@dataclass(frozen=True, slots=True)
class StagePrompts:
    """The texts that belong to a stage, by their keys under `prompts/`."""

    text: tuple[str, ...]
    reasoning: tuple[str, ...]
    """Added if the person has reasoning on."""


STAGE_PROMPTS: Mapping[Stage, StagePrompts] = {
    Stage.WARMUP: StagePrompts(("agent/warmup",), ("agent/reasoning_macro",)),
    Stage.ACT: StagePrompts(("agent/tool_loop_context",), ("agent/reasoning_micro",)),
    Stage.TOOL_FOLLOWUP: StagePrompts(("agent/tool_followup",), ("agent/reasoning_micro",)),
    Stage.MICRO_STEP: StagePrompts(("agent/micro_step",), ("agent/reasoning_micro",)),
    Stage.DELIVERY_CHECK: StagePrompts(("agent/delivery_gate",), ("agent/reasoning_micro",)),
    Stage.QA_REVIEW: StagePrompts(("qa/system",), ("qa/review_micro_reasoning",)),
}
DUTIES: Mapping[Stage, StageDuty] = {
    Stage.WARMUP: StageDuty.MACRO,
    Stage.ACT: StageDuty.NONE,
    Stage.TOOL_FOLLOWUP: StageDuty.NONE,
    Stage.MICRO_STEP: StageDuty.MICRO,
    Stage.DELIVERY_CHECK: StageDuty.NONE,
    Stage.QA_REVIEW: StageDuty.MICRO,
}


def build_stage_policy(
    stage: Stage | None, ai_mode: AiMode, reasoning: bool, table: Mapping[Stage, frozenset[Effect]]
) -> StagePolicy:
    """A stage nobody knows only reads; ai mode `chat` only reads in every stage and is asked for no thoughts."""
    effects = READING if stage is None else table.get(stage, READING)
    agent = ai_mode is AiMode.AGENT
    duty = DUTIES.get(stage, StageDuty.NONE) if stage is not None and agent and reasoning else StageDuty.NONE
    if not agent or duty is StageDuty.MICRO:
        effects = effects & READING
    return StagePolicy(effects, duty)


def is_reasoning_on(posture: Posture) -> bool:
    """Does the person want the agent to think aloud before and between its steps?"""
    return posture.reasoning and posture.ai_mode is AiMode.AGENT


def get_current_stage(session: Session, posture: Posture) -> Stage | None:
    """The stage a session is in: where its run stands, and what the person's switch makes of that."""
    stage = session.stage
    if stage is None or stage in FINAL or stage is Stage.WARMUP:
        return stage
    if not is_reasoning_on(posture):
        return Stage.ACT
    return stage if session.reasoned else Stage.WARMUP


def get_next_stage(stage: Stage | None, changed: bool, failed: bool) -> Stage | None:
    """Where a run stands after a call, with reasoning on: a failure is followed up, a change is thought about."""
    if stage not in (Stage.ACT, Stage.TOOL_FOLLOWUP):
        return stage
    if failed:
        return Stage.TOOL_FOLLOWUP
    return Stage.MICRO_STEP if changed else Stage.ACT
