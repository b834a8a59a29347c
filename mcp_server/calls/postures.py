"""Which posture holds for a principal now? What the person chose, below the operator's ceiling."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_server.model.posture import Posture, PostureChoice, Profile
from mcp_server.state.store import Store


@dataclass
class CurrentPostures:
    store: Store
    default: Posture
    """Where a person stands who has chosen nothing yet."""
    ceiling: Profile
    ceilings: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    """Lower ones, for principals the operator set one for."""
    _known: dict[str, Posture] = field(default_factory=dict[str, Posture])
    _assumed: set[str] = field(default_factory=set[str])
    """Whose posture was learned by a glimpse, which is good enough for a list and not for a call."""
    _moved: set[str] = field(default_factory=set[str])

    async def of(self, principal: str) -> Posture:
        """From memory, once asked for: the store says when it changed."""
        known = None if principal in self._assumed else self._known.get(principal)
        return known or await self._read(principal)

    async def seen(self, principal: str) -> Posture:
        """For whoever only looks at what there is, which does not wait for the state to be open."""
        return self._known.get(principal) or await self._read(principal)

    def known(self, principal: str) -> Posture:
        """For who was asked about before; everybody else is trusted with nothing yet."""
        return self._known.get(principal) or Posture.most_restricted()

    def assume(self, principal: str, chosen: PostureChoice | None) -> None:
        """What was learned before the state was open, for whoever only looks."""
        self._take(principal, chosen)
        self._assumed.add(principal)

    def everybody(self) -> frozenset[str]:
        """Who was asked about so far."""
        return frozenset(self._known)

    async def refresh(self) -> None:
        """Read again what everybody seen so far has chosen."""
        for principal in tuple(self._known):
            await self._read(principal)

    def moved(self) -> frozenset[str]:
        """Whose posture is another one since this was asked last, whoever it was that found out."""
        moved = frozenset(self._moved)
        self._moved.clear()
        return moved

    async def _read(self, principal: str) -> Posture:
        chosen = await self.store.choice(principal)
        self._assumed.discard(principal)
        return self._take(principal, chosen)

    def ceiling_of(self, principal: str) -> Profile:
        """The profile that nobody takes this one beyond."""
        own = self.ceilings.get(principal, self.ceiling)
        return own if self.ceiling.covers(own) else self.ceiling

    def under(self, principal: str, chosen: PostureChoice | None) -> Posture:
        """What a choice comes to here: over what is usual, below the ceiling."""
        return (chosen.over(self.default) if chosen else self.default).capped(self.ceiling_of(principal))

    def _take(self, principal: str, chosen: PostureChoice | None) -> Posture:
        found = self.under(principal, chosen)
        if self._known.setdefault(principal, found) != found:
            self._moved.add(principal)
        self._known[principal] = found
        return found
