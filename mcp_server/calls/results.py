"""How much of an ending is shown? No secret, no outside text without a mark, and never more than a client can take."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.upstream_results import filter_relayed, get_message_limit, keep_within_message
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sanitizer import mark_untrusted, sanitize
from mcp_server.guards.spill import Spill, spill_long_text
from mcp_server.model.context import Progress
from mcp_server.model.policy import Decision
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Question, Raw, Relayed
from mcp_server.model.text import escape_for_model
from mcp_server.model.tools import Tool

MOST_PROBLEM_CHARS = 4_000
MOST_TOLD_CHARS = 500


class BadToolResult(TypeError):
    """A tool returned something that no client can be shown."""


def build_refusal_problem(decision: Decision) -> Problem:
    data = {"layer": str(decision.layer), "rule": decision.rule} if decision.layer else None
    return Problem(decision.code or Code.INTERNAL, decision.reason, decision.way_out, data)


def build_changed_folder_problem(why: str) -> Problem:
    """Nobody was asked because of what was there, and that has changed since."""
    message = f"What is there has changed since this call was judged: {why}. Nothing ran."
    return Problem(Code.STALE, message, "Make the call again; the user may be asked.")


def check_ending(ending: object) -> Ending:
    """Return the ending if it is valid throughout: every part has its type, and JSON can represent it."""
    said: list[object]
    match ending:
        case Done(text=str(), data=None | Mapping() as data, blocks=tuple() as blocks):
            said = [data, *map(_to_json, blocks)]
        case Problem(code=Code(), message=str(), way_out=str(), data=data):
            said = [data]
        case Relayed(blocks=tuple() as blocks, data=data, extra=Mapping() as extra):
            said = [data, extra, *blocks]
        case Question(text=str()):
            said = []
        case _:
            raise BadToolResult(f"{ending!r} is not an ending")
    if any(part is not None for part in said):
        json.dumps(said, allow_nan=False)
    return ending


def _to_json(block: object) -> object:
    """Return the part of a block that JSON must represent. We encode a picture's bytes ourselves."""
    match block:
        case Picture(data=bytes(), media_type=str()):
            return None
        case Raw(block=Mapping() as raw):
            return raw
        case _:
            raise BadToolResult(f"{block!r} is not a block")


def append_note(ending: Ending, note: str) -> Ending:
    """Tell the model something about the call besides its result."""
    match ending:
        case Done():
            return replace(ending, text=f"{ending.text}\n\n{note}")
        case Relayed():
            return replace(ending, blocks=(*ending.blocks, {"type": "text", "text": note}))
        case Problem():
            return replace(ending, way_out="\n".join(filter(None, (ending.way_out, note))))
        case _:
            return ending


def leave_out_long_pictures(done: Done, limit: int) -> Done:
    """Leave out pictures too large for the client's messages. With them, it would reject the whole result."""
    room = limit - len(done.text)
    kept = list[Picture | Raw]()
    for block in done.blocks:
        # Bytes become a third longer on their way.
        room -= len(block.data) * 4 // 3 if isinstance(block, Picture) else 0
        if room >= 0 or not isinstance(block, Picture):
            kept.append(block)
    if len(kept) == len(done.blocks):
        return done
    note = f"[A picture is left out: the client's messages take {limit:,} bytes. Make it smaller first.]"
    return replace(done, text=f"{done.text}\n\n{note}", blocks=tuple(kept))


def wrap_progress(redactor: Redactor, progress: Progress) -> Progress:
    """Report progress, but show no more in it than the ending would."""

    async def tell(done: float, /, total: float | None = None, message: str | None = None) -> None:
        shown = None if message is None else redactor.redact_and_cut(sanitize(message), MOST_TOLD_CHARS)
        await progress(done, total, shown)

    return tell


class ResultFilter(Struct, frozen=True):
    redactor: Redactor
    spill: Spill

    async def filter_ending(self, ending: Ending, tool: Tool, transport: str = "") -> Ending:
        """`transport`: the client's, some of which take no long messages."""
        if isinstance(ending, Relayed):
            shown = await filter_relayed(ending, tool, self.redactor, self.spill)
            return await keep_within_message(shown, tool, transport, self.spill)
        if not isinstance(ending, Done):
            return self.filter_problem(ending) if isinstance(ending, Problem) else ending
        if ending.blocks:
            ending = leave_out_long_pictures(ending, get_message_limit(transport))
        text = sanitize(ending.text) if ending.printed else ending.text
        text = mark_untrusted(text, ending.outside) if ending.outside is not None else text
        text = self.redactor.redact_known_values(text) if ending.verbatim else self.redactor.redact(text)
        if len(text) > tool.max_result_chars:
            text, _ = await anyio.to_thread.run_sync(
                spill_long_text, text, tool.max_result_chars, self.spill, tool.name
            )
            # What was cut out of the text must not come back in the structured part.
            return replace(ending, text=text, data=None)
        if ending.data is None:
            return ending if text == ending.text else replace(ending, text=text)
        return replace(ending, text=text, data=self.redactor.redact_value(ending.data))

    def filter_problem(self, problem: Problem) -> Problem:
        """Filter the texts of a problem: they repeat what a caller sent or a program printed, and both can hold a
        secret, or characters that a terminal obeys."""
        data: Mapping[str, Any] | None = _escape_value(problem.data) if problem.data is not None else None
        return replace(problem, message=self._filter(problem.message), way_out=self._filter(problem.way_out), data=data)

    def _filter(self, text: str) -> str:
        # A secret may contain what is escaped.
        return self.redactor.redact_and_cut(escape_for_model(self.redactor.redact(text)), MOST_PROBLEM_CHARS)


def _escape_value(value: Any) -> Any:
    if isinstance(value, str):
        return escape_for_model(value)
    if isinstance(value, Mapping):
        entries = cast(Mapping[Any, Any], value).items()
        return {_escape_value(key): _escape_value(inner) for key, inner in entries}
    return [_escape_value(one) for one in cast(Sequence[Any], value)] if isinstance(value, list | tuple) else value
