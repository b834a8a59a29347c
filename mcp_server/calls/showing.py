"""What of an ending is shown? No secret, nothing from outside unmarked, and never more than a client can take."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import anyio

from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sanitizer import marked
from mcp_server.guards.spill import Spill, limit
from mcp_server.model.ending import Code, Done, Ending, Picture, Problem, Question, Raw
from mcp_server.model.tool import Tool

MOST_PROBLEM_CHARS = 4_000


@dataclass(frozen=True)
class Showing:
    redactor: Redactor
    spill: Spill

    async def shown(self, ending: Ending, tool: Tool) -> Ending:
        match ending:
            case Done():
                return await self._done(ending, tool)
            case Problem():
                return self.problem(ending)
            case _:
                return ending

    def problem(self, problem: Problem) -> Problem:
        """Messages repeat what a caller sent, or what a program said; both can hold a secret."""
        cut = self.redactor.cut
        return replace(
            problem, message=cut(problem.message, MOST_PROBLEM_CHARS), way_out=cut(problem.way_out, MOST_PROBLEM_CHARS)
        )

    async def _done(self, done: Done, tool: Tool) -> Done:
        text = marked(done.text, done.outside) if done.outside is not None else done.text
        text = self.redactor.exactly(text) if done.verbatim else self.redactor.redact(text)
        if len(text) > tool.max_result_chars:
            text, _ = await anyio.to_thread.run_sync(limit, text, tool.max_result_chars, self.spill, tool.name)
            # What was cut out of the text must not come back through the other door.
            return replace(done, text=text, data=None)
        if done.data is None:
            return done if text == done.text else replace(done, text=text)
        return replace(done, text=text, data=self.redactor.redact_value(done.data))


class NotAnEnding(Exception):
    """A tool returned something else; its type says so, and somebody else's tool need not have one."""


def checked(returned: Ending) -> Ending:
    """What a tool returned, if it can be shown. What cannot would only be noticed by the wire, in the middle of a line
    that many calls share."""
    if not _is_ending(returned):
        raise NotAnEnding(f"a tool returned {type(returned).__name__}, or what one is not made of")
    blocks = returned.blocks if isinstance(returned, Done) else ()
    for said in (getattr(returned, "data", None), *(block.block for block in blocks if isinstance(block, Raw))):
        if said is not None:
            json.dumps(dict(said), allow_nan=False)
    return returned


def _is_ending(returned: object) -> bool:
    match returned:
        case Done(text=str(), data=None | Mapping(), blocks=tuple() as blocks):
            return all(_is_block(block) for block in cast(tuple[Any, ...], blocks))
        case Problem(code=Code(), message=str(), way_out=str(), data=None | Mapping()):
            return True
        case Question(id=str(), text=str()):
            return True
        case _:
            return False


def _is_block(block: object) -> bool:
    match block:
        case Picture(data=bytes(), media_type=str()) | Raw(block=Mapping()):
            return True
        case _:
            return False
