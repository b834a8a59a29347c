"""What of an ending is shown? No secret, nothing from outside unmarked, and never more than a client can take."""

from dataclasses import dataclass, replace

import anyio

from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sanitizer import marked
from mcp_server.guards.spill import Spill, limit
from mcp_server.model.ending import Done, Ending, Problem
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
