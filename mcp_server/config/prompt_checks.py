"""Is every prompt present, readable, free of unknown variables, and silent on what only the user may change?"""

import re
from collections.abc import Iterator

from mcp_server.config.faults import ConfigFault
from mcp_server.config.prompts import HOLE, VARIABLES, PromptError, Prompts
from mcp_server.model.text import find_nearest_name

# No prompt may suggest that the model change what the user decides, not even by forbidding it.
#
# The modes on the menu are the model's to enter; work mode, run control, permission profile, model mode, AI mode and
# reasoning are the user's. Sentences with `never` are no exception: `never hesitate to switch to agent mode` has one
# too, and a prompt that does not mention switching needs none.

OWNED = (
    r"(?:(?:ai|work|model|chat|agent|plan|planning|build|review|repair|research|fast|smart|deep|manual|assisted"
    r"|autonomous|edit|read-only|full-access)[ -]modes?"
    r"|run[ -]control|(?:permission|access)s?(?:[ -](?:profiles?|levels?))?|(?:trusted|unrestricted)(?:[ -]profile)?"
    r"|profiles?|privileges?|posture|axes|the[ ]user's[ ]modes?|reasoning[ ](?:mode|switch|flag|setting))"
)
CHANGING = (
    r"(?:switch(?:es|ed|ing)?|chang(?:e|es|ed|ing)|rais(?:e|es|ed|ing)|lower(?:s|ed|ing)?|escalat(?:e|es|ed|ing)"
    r"|elevat(?:e|es|ed|ing)|upgrad(?:e|es|ed|ing)|widen(?:s|ed|ing)?|enabl(?:e|es|ed|ing)|disabl(?:e|es|ed|ing)"
    r"|activat(?:e|es|ed|ing)|toggl(?:e|es|ed|ing)|leav(?:e|es|ing)|flip(?:s|ped|ping)?|set(?:s|ting)?|adopt(?:s|ed)?"
    r"|turn(?:s|ed|ing)?|mov(?:e|es|ed|ing)|go(?:es|ing)?|chang(?:e|es)|request(?:s|ed|ing)?|grant(?:s|ed|ing)?"
    r"|increas(?:e|es|ed|ing)|need(?:s|ed)?|requir(?:e|es|ed|ing)|works?[ ]better[ ]in|try|use|enter(?:s|ed|ing)?)"
)
OWNERSHIP = "it mentions changing what only the user may change"
REASONING = "it lets the model decide about reasoning, but the user decides that"
COMMAND = "it names a command that only the user may run"
PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (rf"\b{CHANGING}\b[^.!?]{{0,80}}?\b{OWNED}\b", OWNERSHIP),
        (rf"\b{OWNED}\b[^.!?]{{0,40}}?\b(?:switched|changed|raised|turned|enabled|disabled)\b", OWNERSHIP),
        (r"\b(?:turn|switch|toggle|enable|disable|skip|omit|leave|drop)\b[^.!?]{0,40}\breasoning\b", REASONING),
        (
            r"\b(?:optional(?:ly)?|if you (?:like|want|wish|prefer|think)|when (?:useful|helpful)|feel free|may|might"
            r"|whether)\b[^.!?]{0,60}\b(?:reasoning|reason first|think first)\b",
            REASONING,
        ),
        (r"(?:^|\s)`?/(?:mode|control|permission-profile|model-mode|autonomous|ai-mode|reasoning)\b", COMMAND),
        (r"\bmenugate (?:mode|control|profile|model|ai-mode|reasoning|autonomous|approve|trust)\b", COMMAND),
    )
)


def find_objections(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and reason for everything in a text that no prompt may suggest."""
    lines: set[int] = set()
    # Sentences span lines; a space for each line break keeps the positions.
    flat = text.replace("\n", " ")
    for pattern, reason in PATTERNS:
        for match in pattern.finditer(flat):
            line = text.count("\n", 0, match.start()) + 1
            if line not in lines:
                lines.add(line)
                yield line, f"{reason}: `{' '.join(match[0].split())[:100]}`"


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
"""List every prompt that menugate uses, or that a host may use instead of its own."""


def find_prompt_faults(words: Prompts) -> Iterator[ConfigFault]:
    for key in dict.fromkeys((*INVENTORY, *words.list_keys())):
        try:
            text = words.get_prompt_text(key)
        except PromptError as error:
            yield ConfigFault("prompts", 0, key, str(error))
            continue
        file = str(words.find_origin(key).folder / f"{key}.md")
        for hole in HOLE.finditer(text):
            if hole[1] not in VARIABLES:
                message = f"there is no variable `{hole[1][:40]}`; the variables are {', '.join(VARIABLES)}"
                near = find_nearest_name(hole[1], VARIABLES) or ""
                yield ConfigFault(file, text.count("\n", 0, hole.start()) + 1, key, message, near)
        for line, reason in find_objections(text):
            yield ConfigFault(file, line, key, reason)
