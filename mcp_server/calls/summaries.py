"""When is the beginning of a run folded into a summary? When the run exceeds a number of messages, or of tokens.

A call and its answer are two messages. A token counts as four characters, which needs no tokenizer and is the same
everywhere. The newest messages stay out: the model that continues the run still has them in context.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import partial

from mcp_server.model.context import Client
from mcp_server.model.policy import SummaryLimits
from mcp_server.model.reports import LATEST, format_summary_address
from mcp_server.model.results import Refusal
from mcp_server.state import notes
from mcp_server.state.notes import FoldedNotes
from mcp_server.state.store import Store

CHARACTERS_PER_TOKEN = 4
PER_CALL = 2
MOST_RUNS = 1000


@dataclass(slots=True)
class _Grown:
    """How much a run has grown since its beginning was last folded."""

    calls: deque[int]
    """The newest calls, by the number of their intent: those that stay out, and one more."""
    messages: int = 0
    characters: int = 0
    times: int = 1
    """Factor by which the limits grow until the next fold. Folding reads the whole run; if it happens only after the
    run has doubled, its cost per call stays the same, however long the run gets."""


@dataclass
class SummarySchedule:
    store: Store
    limits: SummaryLimits
    _runs: dict[str, _Grown] = field(default_factory=dict[str, _Grown])

    def count_call(self, run: str, intent: int, characters: int) -> bool:
        """Count one more call; True if it is time to fold."""
        grown = self._runs.get(run) or self._start_run(run)
        grown.calls.append(intent)
        grown.messages += PER_CALL
        grown.characters += characters
        tokens = grown.characters // CHARACTERS_PER_TOKEN
        if grown.messages <= grown.times * self.limits.messages and tokens <= grown.times * self.limits.tokens:
            return False
        return len(grown.calls) == grown.calls.maxlen

    async def update_summary(self, run: str, client: Client) -> None:
        """Summarise the run so far, which has grown long, and notify the clients that subscribed to the summary."""
        if await self.fold_run(run):
            for name in (run, LATEST):
                await client.announce_change("resource", format_summary_address(name))

    async def fold_run(self, run: str) -> FoldedNotes | None:
        """Return the folded notes; None if they could not be written."""
        grown = self._runs[run]
        why = {"messages": grown.messages, "tokens": grown.characters // CHARACTERS_PER_TOKEN}
        grown.messages, grown.characters, grown.times = self.limits.keep, 0, 2 * grown.times
        try:
            return await self.store.write(partial(notes.fold_notes, run=run, upto=grown.calls[0], trigger=why))
        except Refusal:
            # The call is done and recorded; what could not be written now can be folded later.
            return None

    def _start_run(self, run: str) -> _Grown:
        if len(self._runs) >= MOST_RUNS:
            del self._runs[next(iter(self._runs))]
        made = self._runs[run] = _Grown(deque(maxlen=self.limits.keep // PER_CALL + 1))
        return made
