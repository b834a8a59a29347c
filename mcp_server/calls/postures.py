"""Which posture holds for a principal now? What the person chose, below the operator's ceiling."""

from dataclasses import dataclass, field, replace

from mcp_server.model.posture import Posture, Profile
from mcp_server.state import Store


@dataclass
class Postures:
    store: Store
    default: Posture
    ceiling: Profile
    _known: dict[str, Posture] = field(default_factory=dict[str, Posture])
    _epoch: int = 0

    def of(self, principal: str) -> Posture:
        """From memory: the store says when it changed."""
        known = self._known.get(principal)
        if known is None:
            known = self._known[principal] = replace(self.default, epoch=self._epoch).capped(self.ceiling)
        return known

    async def refresh(self, principal: str | None = None) -> bool:
        """Read again what is remembered, for one principal or all that were seen; did anything change?"""
        self._epoch = await self.store.epoch()
        before = dict(self._known)
        for name in [principal] if principal else list(self._known):
            chosen = await self.store.posture(name)
            self._known[name] = replace(chosen or self.default, epoch=self._epoch).capped(self.ceiling)
        return any(replace(self._known[name], epoch=0) != replace(old, epoch=0) for name, old in before.items())
