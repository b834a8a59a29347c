"""Is this run paused? Holds set by the person, a finished unit or a spent budget, cached from the state."""

from dataclasses import dataclass
from functools import partial

from mcp_server.model.sessions import Hold, Session
from mcp_server.state import runs
from mcp_server.state.store import Store


@dataclass
class Holds:
    store: Store
    known: dict[tuple[str, str], Hold] | None = None
    """None until the state was read. Nearly always empty, which the pipeline looks at before it asks more."""

    async def refresh(self) -> None:
        self.known = await self.store.read(runs.load_holds)

    def find_hold(self, session: Session) -> Hold | None:
        """Find what holds this session; a hold on all of the person's sessions comes first."""
        if not self.known:
            return None
        everywhere = self.known.get((session.principal, ""))
        return everywhere or self.known.get((session.principal, session.id))

    async def pause(self, session: Session, hold: Hold) -> None:
        pausing = partial(runs.pause_session, principal=session.principal, session=session.id, hold=hold)
        await self.store.write(pausing)
        await self.refresh()
