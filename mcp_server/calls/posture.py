"""Which posture holds, and what is the only way to change it?"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct

from mcp_server.config.limits import Limits
from mcp_server.model.posture import Posture, PostureChange, PostureChoice, RunControl
from mcp_server.model.results import Problem
from mcp_server.policy.pending import describe_pending, list_paused_runs, list_unanswered_approvals
from mcp_server.policy.posture import PostureStep, list_coming_choices, remove_settled_axes
from mcp_server.policy.posture_width import get_narrower_posture
from mcp_server.state import approval_questions, posture, posture_changes, runs
from mcp_server.state.engine.rows import VersionMoved
from mcp_server.state.store import Store

# Which posture holds for a principal now? The person's choice, capped by the operator's ceiling.


@dataclass
class CurrentPostures:
    store: Store
    limits: Limits
    _known: dict[str, Posture] = field(default_factory=dict[str, Posture])
    _assumed: set[str] = field(default_factory=set[str])
    """Principals whose posture comes from an early read: good enough for a list, not for a call."""
    _moved: set[str] = field(default_factory=set[str])

    async def get_current(self, principal: str) -> Posture:
        """Answer from memory once loaded: the store tells us when it changes."""
        known = None if principal in self._assumed else self._known.get(principal)
        return known or await self.reread(principal)

    async def get_for_display(self, principal: str) -> Posture:
        """Return the posture for display only, without waiting for the state to open."""
        return self._known.get(principal) or await self.reread(principal)

    def get_known(self, principal: str) -> Posture:
        """Return the posture if it is known; an unknown principal is trusted with nothing yet."""
        return self._known.get(principal) or Posture.most_restricted()

    def assume(self, principal: str, chosen: PostureChoice | None) -> None:
        """Take over, for display only, a choice that was read before the state was open."""
        self._remember_choice(principal, chosen)
        self._assumed.add(principal)

    def get_known_principals(self) -> frozenset[str]:
        """The principals asked about so far."""
        return frozenset(self._known)

    async def refresh(self) -> None:
        """Reload the choice of every principal seen so far."""
        for principal in tuple(self._known):
            await self.reread(principal)

    def pop_changed_principals(self) -> frozenset[str]:
        """Return whose posture has changed since the last time this was asked, whatever noticed the change."""
        moved = frozenset(self._moved)
        self._moved.clear()
        return moved

    async def is_current(self, principal: str, posture: Posture) -> bool:
        """False if the person has changed it, and this server has not noticed yet; by then it has."""
        if await self.store.read(lambda view: view.get_epoch(principal)) == posture.epoch:
            return True
        return await self.reread(principal) == posture

    async def reread(self, principal: str) -> Posture:
        """Read the posture from the file itself: it may have changed since the store last looked."""
        return (await self.reread_with_choice(principal))[0]

    async def reread_with_choice(self, principal: str) -> tuple[Posture, PostureChoice | None]:
        """The same, with the choice behind it and its pending changes; None if the person never chose."""
        choice = await self.store.read(partial(posture.load_choice, principal=principal))
        self._assumed.discard(principal)
        return self._remember_choice(principal, choice), choice

    def _remember_choice(self, principal: str, choice: PostureChoice | None) -> Posture:
        current = self.limits.apply_choice(principal, choice)
        if self._known.setdefault(principal, current) != current:
            self._moved.add(principal)
        self._known[principal] = current
        return current


# Who may change the posture, and which changes are refused?
#
# No tool and no menu calls `request_change`, and no client's answer to a tool's question leads to it. The terminal may
# raise the profile up to the ceiling. A prompt may widen the posture too, but only after the person approved: by
# answering a question that they must have read, or at a terminal if the client cannot ask, the question was not
# answered, or the operator does not trust the client to ask (`approvals: out_of_band`).


class PostureChanges(Struct, frozen=True):
    store: Store
    postures: CurrentPostures
    new_id: Callable[[], str]

    async def request_change(
        self, principal: str, change: PostureChange, epoch: int | None = None
    ) -> PostureChoice | VersionMoved | Problem:
        """`epoch`: that of the posture the change was weighed against. If the epoch has changed, nothing happens."""
        if problem := self.postures.limits.find_ceiling_problem(principal, change):
            return problem
        return await self.store.write(
            partial(posture_changes.request_posture_change, principal=principal, change=change, epoch=epoch)
        )

    def remove_settled_axes(self, now: Posture, choice: PostureChoice | None, change: PostureChange) -> PostureChange:
        """Leave out the values that hold already. One that holds only because of the ceiling is still a choice."""
        usual = self.postures.limits.posture
        return remove_settled_axes(choice, (now, choice.apply_to(usual) if choice else usual), change)

    def find_narrowest_posture(
        self, principal: str, now: Posture, choice: PostureChoice | None, change: PostureChange
    ) -> Posture:
        """Return the narrowest of the current posture and those it will fall back to: making something outlast its time
        widens the posture, too."""
        for later in list_coming_choices(choice, change) if choice else ():
            now = get_narrower_posture(now, self.postures.limits.apply_choice(principal, later))
        return now

    async def describe_waiting(self, principal: str, control: RunControl, now: int) -> list[str]:
        """Describe what waits for the person, for this principal only."""
        held = await self.store.read(runs.load_active_holds)
        asked = await self.store.read(approval_questions.load_approvals)
        mine = {key: hold for key, hold in held.items() if key[0] == principal}
        questions = [one for one in asked if one.wanted.principal == principal]
        return list(
            describe_pending(list_paused_runs(mine, lambda _: control), list_unanswered_approvals(questions, now), now)
        )

    async def open_request(
        self, principal: str, wanted: PostureChange, epoch: int | None, carried: Collection[str]
    ) -> PostureChange | VersionMoved | Problem:
        """Store what a client requests and the person has yet to agree to, or return the same request if it is open.
        `carried`: the ids of the requests whose questions the client brings back."""
        if problem := self.postures.limits.find_ceiling_problem(principal, wanted):
            return problem
        return await self.store.write(lambda tx: posture_changes.open_request(tx, principal, wanted, epoch, carried))

    async def confirm_request(self, principal: str, id: str, epoch: int | None) -> PostureChoice | VersionMoved | None:
        """Make the change that the person agreed to in a client; None if the request is no longer open."""
        return await self.store.write(lambda tx: posture_changes.confirm_request(tx, principal, id, epoch))

    async def leave_request(self, principal: str, id: str, tries: int, why: str) -> PostureChange | None:
        """Record what became of a request's question, without changing anything; None if it is no longer open."""
        return await self.store.write(lambda tx: posture_changes.leave_request(tx, principal, id, tries, why))

    async def confirm(self, principal: str, id: str) -> PostureChoice | None:
        return await self.store.write(partial(posture_changes.confirm_change, principal=principal, id=id))

    async def drop(self, principal: str, ids: Iterable[str]) -> list[PostureStep]:
        return await self.store.write(partial(posture_changes.drop_changes, principal=principal, ids=tuple(ids)))
