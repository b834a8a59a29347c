"""What is remembered of this project from earlier runs? Read per principal; written only if a run succeeds."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from mcp_server.calls.documents import new_id
from mcp_server.model.memory import LONGEST, MemoryEntry, MemoryMatches, Tier
from mcp_server.model.query import Query, find_words
from mcp_server.model.results import Refusal
from mcp_server.model.sessions import Session
from mcp_server.model.text import format_count, shorten_to_line
from mcp_server.state import memory
from mcp_server.state import notes as state_notes
from mcp_server.state.store import Store

# Worth remembering of a successful run: its answer in short, the lines marked as facts or decisions, the decisions its
# tools noted, and the files it changed. A decision that the run dropped on the way is not in its answer.

MARKED = re.compile(
    r"^[ \t>*_+#-]{0,20}(decision|fact)[*_]{0,3}[ \t]{0,3}:[*_]{0,3}[ \t]*(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE
)
MAX_LINES = 20
"""Of each kind, in one answer."""
MAX_FILES = 10


def distil_answer(answer: str, notes: Sequence[tuple[str, str]] = ()) -> list[tuple[Tier, str]]:
    """Extract facts and decisions in order, and the rest of the answer as the outcome. `notes` were taken during the
    run, each with kind and text."""
    marked = [(Tier(kind.lower()), shorten_to_line(text, LONGEST)) for kind, text in MARKED.findall(answer)]
    marked += [(Tier.DECISION, shorten_to_line(text, LONGEST)) for kind, text in notes if kind == Tier.DECISION]
    changed = _describe_changed_files(list(dict.fromkeys(text for kind, text in notes if kind == "file")))
    outcome = shorten_to_line(MARKED.sub("", answer), LONGEST - len(changed)) or shorten_to_line(
        answer, LONGEST - len(changed)
    )
    return [*dict.fromkeys(_limit_each_tier(marked)), *([(Tier.OUTCOME, outcome + changed)] if outcome else [])]


def _describe_changed_files(files: Sequence[str]) -> str:
    if not files:
        return ""
    more = f" and {len(files) - MAX_FILES} more" if len(files) > MAX_FILES else ""
    paths = ", ".join(f"`{shorten_to_line(path, 60)}`" for path in files[:MAX_FILES])
    return f" Changed {paths}{more}."


def _limit_each_tier(marked: list[tuple[Tier, str]]) -> Iterator[tuple[Tier, str]]:
    for tier in (Tier.FACT, Tier.DECISION):
        yield from [one for one in marked if one[0] is tier and one[1]][:MAX_LINES]


class ProjectMemory(Struct, frozen=True):
    store: Store
    redact: Callable[[str], str]

    def build_lookup(self, session: Session) -> "Lookup":
        return Lookup(self.store, session.principal)

    async def learn(self, session: Session, answer: str) -> str:
        """Remember a successful run by its answer; tell the model what was remembered."""
        try:
            notes = await self.store.read(partial(state_notes.load_notes, run=session.run))
            # Redact before cutting, so that no half of a secret slips through. Notes were redacted when they were kept.
            texts = distil_answer(self.redact(answer), notes)
            actor = {"session": session.id, "run": session.run}
            learned = memory.NewMemory(session.principal, texts, "run", actor)
            entries = await self.store.write(partial(memory.remember_entries, memory=learned, new_id=new_id))
        except Refusal as refused:
            # The run is already over and recorded, so a failure here is only reported.
            return f" Nothing was remembered: {refused.problem.message}"
        counts = Counter(entry.tier for entry in entries)
        parts = [format_count(count, tier) for tier in Tier if (count := counts[tier])]
        return f" Remembered for later runs: {', '.join(parts)}." if parts else ""


class Lookup(Struct, frozen=True):
    """The `Memory` port for one principal: nobody reads what another principal's runs left behind."""

    store: Store
    principal: str

    async def search(self, query: str, tier: Tier | None = None, limit: int = 10, offset: int = 0) -> MemoryMatches:
        entries = await self.store.read(partial(memory.load_memory, principal=self.principal))
        matches = rank_entries([entry for entry in entries if tier in (None, entry.tier)], query)
        return MemoryMatches(matches[offset : offset + limit], len(matches))


def rank_entries(entries: list[MemoryEntry], query: str) -> list[MemoryEntry]:
    """Rank the entries with a term of the query: most terms first, then by tier, then newest. Without a query, return
    all, newest first."""
    tiers = {tier: place for place, tier in enumerate(Tier)}
    if not query.strip():
        return sorted(entries, key=lambda one: (-one.at, tiers[one.tier], one.id))
    terms = Query.parse(query).terms
    scores = {
        one.id: sum(term.is_on_line(find_words(one.text), one.text.casefold()) for term in terms) for one in entries
    }
    return sorted(
        (one for one in entries if scores[one.id]), key=lambda one: (-scores[one.id], tiers[one.tier], -one.at, one.id)
    )
