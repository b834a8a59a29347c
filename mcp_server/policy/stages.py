"""What does a stage allow and require, and which stage follows a call?

A stage narrows what tools may do and never changes what the person chose. With reasoning on, a run starts in `warmup`
and stops in `micro_step` after every unit; `think` moves on from both. With reasoning off it never enters them.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mcp_server.model.posture import AiMode, Posture, Stage
from mcp_server.model.sessions import Session
from mcp_server.model.tools import READING, Effect

FINAL = frozenset({Stage.DELIVERY_CHECK, Stage.QA_REVIEW})
"""The run is delivered, or being delivered; the next call starts another run."""


class StageDuty(StrEnum):
    """The kind of thought that a stage requires."""

    NONE = "none"
    MACRO = "macro"
    """The six headings, once, before the first change."""
    MICRO = "micro"
    """A few points between one unit and the next."""


class StagePolicy(Struct, frozen=True):
    effects: frozenset[Effect]
    duty: StageDuty


class StagePrompts(Struct, frozen=True):
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
    """In an unknown stage only reading is allowed; so it is in AI mode `chat`, in every stage and without thoughts."""
    effects = READING if stage is None else table.get(stage, READING)
    agent = ai_mode is AiMode.AGENT
    duty = DUTIES.get(stage, StageDuty.NONE) if stage is not None and agent and reasoning else StageDuty.NONE
    if not agent or duty is StageDuty.MICRO:
        effects = effects & READING
    return StagePolicy(effects, duty)


def is_reasoning_on(posture: Posture) -> bool:
    """True if the agent must think before and between its steps."""
    return posture.reasoning and posture.ai_mode is AiMode.AGENT


def get_current_stage(session: Session, posture: Posture) -> Stage | None:
    """Return the stage that applies now: the run's own, unless reasoning was switched on or off meanwhile."""
    stage = session.stage
    if stage is None or stage in FINAL or stage is Stage.WARMUP:
        return stage
    if not is_reasoning_on(posture):
        return Stage.ACT
    return stage if session.reasoned else Stage.WARMUP


def get_next_stage(stage: Stage | None, changed: bool, failed: bool) -> Stage | None:
    """Return the stage after a call, with reasoning on: follow up a failure, think about a change."""
    if stage not in (Stage.ACT, Stage.TOOL_FOLLOWUP):
        return stage
    if failed:
        return Stage.TOOL_FOLLOWUP
    return Stage.MICRO_STEP if changed else Stage.ACT
