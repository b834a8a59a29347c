"""What does each part of the call do, what would be lost by it, and which one made it ask?"""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from mcp_server.calls.approval_arguments import PLAIN_QUOTE, QUOTE, format_value, mark_secrets, to_field
from mcp_server.calls.approval_losses import build_loss_fields, format_loss
from mcp_server.guards.jail import Jail
from mcp_server.guards.loss_sizes import UNCOUNTED, MeasuredLoss, measure_loss
from mcp_server.guards.path_sizes import MAX_SECONDS, PathSize
from mcp_server.guards.redaction import Redactor
from mcp_server.model.policy import Decision
from mcp_server.model.processes import PROJECT_PROGRAMS
from mcp_server.model.results import Refusal
from mcp_server.model.tools import READING, Arguments, CallPart, Tool

PARTS = "the parts"
"""A key among the places a call leads to. No argument has this name."""
PARTS_HEAD = "What the line does:"
MOST_LOSSES = 5
DOES = {"reads": "reads", "builds": "needs no approval"}


class ShownPart(NamedTuple):
    part: CallPart
    decided: bool
    """You are asked because of this part."""
    losses: tuple[MeasuredLoss, ...] = ()
    own: tuple[str, ...] = ()
    """Programs of the project that it runs, instead of the machine's."""


def list_parts(tool: Tool, arguments: Arguments, decision: Decision, redactor: Redactor, jail: Jail) -> list[ShownPart]:
    """List nothing if the call contains a known secret, because a part could end in the middle of it and show it."""
    parts = tool.parts(arguments) if tool.parts is not None else ()
    subject = str(arguments.get(tool.subject[0], "")) if tool.subject else ""
    if any(secret for _, secret in redactor.split_at_secrets(subject)):
        return []
    until = time.monotonic() + MAX_SECONDS
    deciding = next((part for part in parts if part.why and part.why in decision.reason), None)
    effect = decision.demand.effect if decision.demand else tool.effect
    return [
        ShownPart(
            part,
            part is deciding,
            tuple(_measure_losses(part, jail, until)),
            # A call that only reads finds none of them.
            () if effect in READING else tuple(_find_own_programs(part, jail)),
        )
        for part in parts
    ]


def _find_own_programs(part: CallPart, jail: Jail) -> Iterator[str]:
    for name in part.programs:
        found = (path for folder in PROJECT_PROGRAMS if _is_there(jail, path := f"{folder}/{name}"))
        yield from islice(found, 1)


def _is_there(jail: Jail, path: str) -> bool:
    with suppress(Refusal, OSError), jail.open_deepest(path, False, reading=True) as (_, missing):
        return not missing
    return False


def _measure_losses(part: CallPart, jail: Jail, until: float) -> Iterator[MeasuredLoss]:
    for loss in part.losses[:MOST_LOSSES]:
        late = loss.known and time.monotonic() > until
        measured = MeasuredLoss(loss, PathSize(loss.path, UNCOUNTED)) if late else measure_loss(jail, loss)
        if measured is not None:
            yield measured


def format_part_lines(shown: Sequence[ShownPart], redactor: Redactor, stated: Collection[str] = ()) -> Iterator[str]:
    """`stated`: files whose size the question gives already."""
    if len(shown) < 2 and not any(one.losses or one.own for one in shown):
        return
    yield PARTS_HEAD
    # At a profile that allows every line, such a part does not make anybody ask.
    asks = "asks" if any(part.decided for part in shown) else "could do more"
    said = {part.why for part, decided, _, _ in shown if decided}
    for part, decided, losses, own in shown:
        why = f", because {_format_why(part.why, redactor)}" if part.why else ""
        if part.why in said:
            why = ", for the same reason"
        said |= {part.why} - {""}
        says = "asks, for the reason above" if decided else f"{DOES.get(part.does, asks)}{why}"
        runs = [f"runs the project's own {' and '.join(_format_name(one, redactor) for one in own)}"] if own else []
        if part.after:
            runs.append(f"may mean something else after {format_value(part.after, redactor)}")
        # What the project brings may do more than read.
        says = "; ".join(runs if part.does == "reads" and runs else [says, *runs])
        lost = "".join(f"; {format_loss(one, redactor, stated)}" for one in losses)
        lost += f"; and {left:,} more" if (left := len(part.losses) - MOST_LOSSES) > 0 else ""
        yield f"  {format_value(part.text, redactor)}: {says}{lost}"


def _format_name(name: str, redactor: Redactor) -> str:
    return name if PLAIN_QUOTE.fullmatch(name) else format_value(name, redactor)


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
            "does": "builds" if part.does == "reads" and (own or part.after) else part.does,
            "own_programs": [to_field("", one, redactor)["value"] for one in own],
            "why": mark_secrets(part.why, redactor) or None,
            "decided": decided,
            "losses": [build_loss_fields(one, redactor) for one in losses],
        }
        for part, decided, losses, own in shown
    ]
