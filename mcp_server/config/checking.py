"""Are the words in order? Every prompt there, readable, asking only for what can be given, and silent on what is not
the model's to change."""

from collections.abc import Iterator

from mcp_server.config.faults import ConfigFault, nearest
from mcp_server.config.filling import HOLE, VARIABLES
from mcp_server.config.prompt_checks import objections
from mcp_server.config.prompts import PromptError, Prompts

INVENTORY = (
    *("base/system", "base/project_root_context", "instructions/head", "instructions/tail"),
    *("agent/mode_addition", "chat/mode_addition", "agent/warmup", "agent/tool_loop_context", "agent/tool_followup"),
    *("agent/micro_step", "agent/reasoning_macro", "agent/reasoning_micro", "agent/empty_response_recovery"),
    *("agent/user_input_request_block", "agent/delivery_gate"),
    *("corrections/force_tool_followup", "corrections/no_user_input_next_step"),
    *("corrections/empty_response_followup", "corrections/tool_failure"),
    *("delivery_gate/reasoning_format_correction", "delivery_gate/low_quality_reasoning"),
    *("delivery_gate/reasoning_only_no_answer", "delivery_gate/enforce_delivery_completion"),
    *("qa/system", "qa/review_micro_reasoning", "qa/report_schema"),
    *("qa/tool_output_review_system", "qa/quality_review_system", "qa/reviewer"),
)
"""Every prompt that something in the house says, or that a host may want in its place."""


def faults_in(words: Prompts) -> Iterator[ConfigFault]:
    for key in dict.fromkeys((*INVENTORY, *words.known())):
        try:
            text = words.text(key)
        except PromptError as wrong:
            yield ConfigFault("prompts", 0, key, str(wrong))
            continue
        file = str(words.origin(key).folder / f"{key}.md")
        for hole in HOLE.finditer(text):
            if hole[1] not in VARIABLES:
                known = ", ".join(VARIABLES)
                message = f"there is no variable `{hole[1][:40]}`; there are {known}"
                yield ConfigFault(
                    file, text.count("\n", 0, hole.start()) + 1, key, message, nearest(hole[1], VARIABLES)
                )
        for line, reason in objections(text):
            yield ConfigFault(file, line, key, reason)
