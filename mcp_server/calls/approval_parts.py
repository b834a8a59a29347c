"""What does each part of the call do, and which one made it ask?"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mcp_server.calls.approval_arguments import PLAIN_QUOTE, QUOTE, format_value, mark_secrets, to_field
from mcp_server.guards.redaction import Redactor
from mcp_server.model.policy import Decision
from mcp_server.model.tools import Arguments, CallPart, Tool

PARTS = "the parts"
"""A key among the places a call leads to. No argument has this name."""
PARTS_HEAD = "What the line does:"
DOES = {"reads": "reads", "builds": "builds or tests"}


class ShownPart(NamedTuple):
    part: CallPart
    decided: bool
    """You are asked because of this part."""


def list_parts(tool: Tool, arguments: Arguments, decision: Decision, redactor: Redactor) -> list[ShownPart]:
    """List nothing if the call contains a known secret, because a part could end in the middle of it and show it."""
    parts = tool.parts(arguments) if tool.parts is not None else ()
    subject = str(arguments.get(tool.subject[0], "")) if tool.subject else ""
    if any(secret for _, secret in redactor.split_at_secrets(subject)):
        return []
    deciding = next((part for part in parts if part.why and part.why in decision.reason), None)
    return [ShownPart(part, part is deciding) for part in parts]


def format_part_lines(shown: Sequence[ShownPart], redactor: Redactor) -> Iterator[str]:
    if len(shown) < 2:
        return
    yield PARTS_HEAD
    # At a profile that allows every line, such a part does not make anybody ask.
    asks = "asks" if any(decided for _, decided in shown) else "could do more"
    for part, decided in shown:
        why = f", because {_format_why(part.why, redactor)}" if part.why else ""
        says = "asks, for the reason above" if decided else f"{DOES.get(part.does, asks)}{why}"
        yield f"  {format_value(part.text, redactor)}: {says}"


def _format_why(why: str, redactor: Redactor) -> str:
    """Quote in it as JSON what could pass for words of ours."""
    pieces = enumerate(QUOTE.split(why))
    return "".join(
        mark_secrets(piece, redactor)
        if not at % 2
        else (f"`{mark_secrets(piece, redactor)}`" if PLAIN_QUOTE.fullmatch(piece) else format_value(piece, redactor))
        for at, piece in pieces
    )


def build_part_fields(shown: Sequence[ShownPart], redactor: Redactor) -> list[dict[str, Any]]:
    return [
        {
            "text": to_field("", part.text, redactor)["value"],
            "start": part.span[0] if part.span else None,
            "end": part.span[1] if part.span else None,
            "does": part.does,
            "why": mark_secrets(part.why, redactor) or None,
            "decided": decided,
        }
        for part, decided in shown
    ]
