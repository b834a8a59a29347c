"""What may a tool do with the project's memory? Only search it.

Nothing is remembered on a tool's word: entries are written when a run ends in success, or by the person.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class Tier(StrEnum):
    """The three kinds of memory, longest-lasting first."""

    FACT = "fact"
    """What is true of this project: paths, commands that build and test it."""
    DECISION = "decision"
    """Decisions about how the project is built."""
    OUTCOME = "outcome"
    """How the last runs ended."""


MOST: dict[Tier, int] = {Tier.FACT: 200, Tier.DECISION: 200, Tier.OUTCOME: 50}
"""How many of each are kept for one principal; the oldest is dropped first."""
LONGEST = 1_000
"""Characters of one entry."""


class MemoryEntry(Struct, frozen=True):
    id: str
    at: int
    tier: Tier
    text: str
    principal: str
    session: str = ""
    run: str = ""
    by: str = "run"
    """`run`, or `person`."""


class MemoryMatches(Struct, frozen=True):
    """The best matches, and how many there are in total."""

    shown: Sequence[MemoryEntry]
    total: int


class Memory(Protocol):
    async def search(self, query: str, tier: Tier | None = None, limit: int = 10, offset: int = 0) -> MemoryMatches: ...
