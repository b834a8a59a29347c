"""What does a stage allow and require, and which stage follows a call?

A stage narrows what tools may do and never changes what the person chose. With reasoning on, a run starts in `warmup`
and stops in `micro_step` after every unit; `think` moves on from both. With reasoning off it never enters them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class StagePolicy:
    effects: frozenset[Effect]
    prompts: tuple[str, ...]
    """The prompts of the stage, by their keys under `prompts/`, in the order in which they are composed."""
    duty: StageDuty


PROMPTS: Mapping[Stage, tuple[str, ...]] = {
    Stage.WARMUP: (),
    Stage.ACT: ("agent/tool_loop_context",),
    Stage.TOOL_FOLLOWUP: ("agent/tool_loop_context",),
    Stage.MICRO_STEP: ("agent/tool_loop_context",),
    Stage.DELIVERY_CHECK: ("agent/delivery_gate",),
    Stage.QA_REVIEW: ("qa/system", "qa/report_schema"),
}
DUTIES: Mapping[Stage, StageDuty] = {
    Stage.WARMUP: StageDuty.MACRO,
    Stage.MICRO_STEP: StageDuty.MICRO,
    Stage.QA_REVIEW: StageDuty.MICRO,
}
REASONING = {
    StageDuty.MACRO: ("agent/reasoning_macro",),
    StageDuty.MICRO: ("agent/reasoning_micro",),
    StageDuty.NONE: (),
}
REVIEWING = ("qa/review_micro_reasoning",)


def build_stage_policy(
    stage: Stage | None, ai_mode: AiMode, reasoning: bool, table: Mapping[Stage, frozenset[Effect]]
) -> StagePolicy:
    """In an unknown stage only reading is allowed; so it is in AI mode `chat`, in every stage and without thoughts."""
    effects = READING if stage is None else table.get(stage, READING)
    agent = ai_mode is AiMode.AGENT
    duty = DUTIES.get(stage, StageDuty.NONE) if stage is not None and agent and reasoning else StageDuty.NONE
    if not agent or duty is StageDuty.MICRO:
        effects = effects & READING
    words = PROMPTS.get(stage, ()) if stage is not None and agent else ()
    thinking = REVIEWING if stage is Stage.QA_REVIEW and duty is StageDuty.MICRO else REASONING[duty]
    return StagePolicy(effects, (*words, *thinking), duty)


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
