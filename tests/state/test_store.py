"""Any sequence of moves and choices, over two processes and restarts, ends where a plain dictionary says."""

import asyncio
import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from mcp_server.model.posture import Posture, PostureChoice, Profile, WorkMode
from mcp_server.model.sessions import Session
from mcp_server.state.engine.rows import PostureMoved, VersionMoved
from mcp_server.state.store import Store
from tests.sizes import scale
from tests.state.parts import Place, choose_all, intent

who = st.sampled_from(["me", "you"])
where = st.sampled_from(["a", "b"])
which = st.integers(0, 1)


class Journeys(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.place = Place(Path(self.folder.name))
        self.loop = asyncio.Runner()
        self.stores = [self.loop.run(self.opened()), self.loop.run(self.opened())]
        self.sessions = {id: Session(id, "me") for id in "ab"}
        self.postures: dict[str, Posture] = {}
        self.acknowledged: list[int] = []

    async def opened(self) -> Store:
        store = self.place.store()
        await store.wait_until_ready()
        return store

    @initialize()
    def known(self) -> None:
        for session in self.sessions.values():
            self.loop.run(self.stores[0].put_session(session))

    @rule(process=which, id=where, mode=st.sampled_from([None, "git", "swe"]))
    def moves(self, process: int, id: str, mode: str | None) -> None:
        before = self.sessions[id]
        found = self.loop.run(self.stores[process].move_session(before, replace(before, mode=mode), "journey"))
        self.sessions[id] = replace(before, mode=mode, version=before.version + 1)
        assert found == self.sessions[id]

    @rule(process=which, id=where, behind=st.integers(1, 3))
    def moves_from_an_old_place(self, process: int, id: str, behind: int) -> None:
        old = replace(self.sessions[id], version=self.sessions[id].version - behind)
        assert self.loop.run(self.stores[process].move_session(old, old, "late")) == VersionMoved(self.sessions[id])

    @rule(process=which, principal=who, profile=st.sampled_from(Profile), work=st.sampled_from(WorkMode))
    def chooses(self, process: int, principal: str, profile: Profile, work: WorkMode) -> None:
        current = self.postures.get(principal, Posture())
        chosen = replace(current, profile=profile, work_mode=work)
        found = self.loop.run(choose_all(self.stores[process], principal, chosen, "journey"))
        self.postures[principal] = replace(chosen, epoch=current.epoch + 1)
        assert found == self.postures[principal]

    @rule(process=which, principal=who, ahead=st.sampled_from([0, 0, 1, -1]))
    def calls(self, process: int, principal: str, ahead: int) -> None:
        current = self.postures.get(principal, Posture())
        call = intent(session=Session("a", principal), posture=replace(current, epoch=current.epoch + ahead))
        found = self.loop.run(self.stores[process].record_intent(call))
        if ahead:
            assert found == PostureMoved(current.epoch)
        else:
            assert isinstance(found, int)
            self.acknowledged.append(found)

    @rule(process=which)
    def starts_again(self, process: int) -> None:
        self.loop.run(self.stores[process].close())
        self.stores[process] = self.loop.run(self.opened())

    @invariant()
    def numbers_never_repeat(self) -> None:
        assert all(earlier < later for earlier, later in itertools.pairwise(self.acknowledged))

    def teardown(self) -> None:
        for store in self.stores:
            self.loop.run(store.close())
        with self.place.reader() as state:
            assert {kept.session.id: kept.session for kept in state.load_sessions()} == self.sessions
            assert state.load_choices() == {
                who: PostureChoice.build_from_posture(one) for who, one in self.postures.items()
            }
            rows = list(state.read_rows())
            assert [row.seq for row in rows if row.kind == "intent"] == self.acknowledged
            for id, session in self.sessions.items():
                moves = [row.fields["to"] for row in rows if row.kind == "transition" and row.fields["session"] == id]
                assert (moves[-1]["mode"] if moves else None) == session.mode
            assert state.verify().ok
        self.loop.close()
        self.folder.cleanup()


TestJourneys = pytest.mark.heavy(Journeys.TestCase)
TestJourneys.settings = settings(max_examples=scale(100), stateful_step_count=20, deadline=None, derandomize=True)
