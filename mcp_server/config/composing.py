"""Which words make up what a model is told, and in which order? The same posture and stage give the same bytes."""

from collections.abc import Mapping

from mcp_server.config.prompts import Prompts
from mcp_server.model.posture import AiMode, Posture, Stage

BASE = ("base/system", "base/project_root_context")
ADDITIONS = {AiMode.AGENT: "agent/mode_addition", AiMode.CHAT: "chat/mode_addition"}
STAGES = {
    Stage.WARMUP: "agent/warmup",
    Stage.ACT: "agent/tool_loop_context",
    Stage.TOOL_FOLLOWUP: "agent/tool_followup",
    Stage.MICRO_STEP: "agent/micro_step",
    Stage.DELIVERY_CHECK: "agent/delivery_gate",
    Stage.QA_REVIEW: "qa/system",
}
REASONING = {
    Stage.WARMUP: "agent/reasoning_macro",
    Stage.QA_REVIEW: "qa/review_micro_reasoning",
}
"""In every other stage it is the short form."""
SHORT_FORM = "agent/reasoning_micro"


def keys_for(posture: Posture, stage: Stage) -> tuple[str, ...]:
    """Base, project root, mode, stage, and reasoning where the person has it on."""
    reasoning = posture.reasoning and posture.ai_mode is AiMode.AGENT
    last = (REASONING.get(stage, SHORT_FORM),) if reasoning else ()
    return (*BASE, ADDITIONS[posture.ai_mode], STAGES[stage], *last)


def composed(words: Prompts, posture: Posture, stage: Stage, values: Mapping[str, str]) -> str:
    return "\n\n".join(words.say(key, values) for key in keys_for(posture, stage)) + "\n"
