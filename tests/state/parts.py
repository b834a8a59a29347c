"""What the tests of the state have in common: a workspace, a clock that moves when told, a call."""

import hashlib
import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from mcp_server.model.policy import Decision, Layer, Verdict
from mcp_server.model.posture import Posture, PostureChange, PostureChoice, Profile
from mcp_server.model.results import Code
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Demand, Effect
from mcp_server.state import posture, posture_changes
from mcp_server.state.engine.rows import IntentRow, Origin, OutcomeRow, RefusalRow, VersionMoved
from mcp_server.state.reader import Reader
from mcp_server.state.store import Store

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
READING_CALL = Demand(Effect.READ_LOCAL, Profile.RESTRICTED)
CHANGING_CALL = Demand(Effect.WRITE_LOCAL, Profile.NORMAL)
ALLOWED = Decision(Verdict.ALLOW)
DENIED = Decision(Verdict.DENY, Layer.RULES, Code.RULE_DENIED, "a rule says no", rule="deny bash(rm:*)")
_numbers = itertools.count(1)


@dataclass
class ManualClock:
    now: int = 1_800_000_000 * SECOND

    def now_ns(self) -> int:
        self.now += 1
        return self.now


@dataclass
class Place:
    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)

    @property
    def state(self) -> Path:
        return self.folder / ".menugate"

    @property
    def file(self) -> Path:
        return self.state / "state.db"

    @property
    def anchor(self) -> Path:
        return self.state / "ledger.anchor"

    @property
    def secrets(self) -> Path:
        return self.folder / "secrets"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    def store(self) -> Store:
        self.folder.mkdir(exist_ok=True)
        return Store.open(self.url, secrets=self.secrets, clock=self.clock, new_id=lambda: f"id{next(_numbers)}")

    def reader(self) -> Reader:
        return Reader.open(self.url, secrets=self.secrets)

    def sql(self, *statements: str) -> None:
        """As somebody with a database tool would."""
        connection = sqlite3.connect(self.file)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()


@dataclass
class Hands:
    held: list[Store] = field(default_factory=list[Store])

    async def open(self, place: Place) -> Store:
        store = place.store()
        self.held.append(store)
        await store.wait_until_ready()
        return store

    async def close(self) -> None:
        while self.held:
            await self.held.pop().close()


SESSION = Session("s1", "me", mode="git", run="r1")


def intent(
    tool: str = "Read", session: Session = SESSION, posture: Posture | None = None, about: str = ""
) -> IntentRow:
    digest = hashlib.sha256(about.encode()).hexdigest()
    decision = replace(ALLOWED, demand=CHANGING_CALL if tool == "Write" else READING_CALL)
    return IntentRow(
        session, posture or Posture(), tool, decision, Origin("c1", "opencode", "stdio"), 36, digest, len(about)
    )


def refused(tool: str = "bash", session: Session = SESSION) -> RefusalRow:
    return RefusalRow(session, Posture(), tool, DENIED, Origin("c1", "opencode", "stdio"), 36, "0" * 64, 2)


def outcome(seq: int, tool: str = "Read", code: Code | None = None, session: str = SESSION.id) -> OutcomeRow:
    return OutcomeRow(seq, "problem" if code else "done", code, 120, 800, 400, session, tool)


async def intended(store: Store, one: IntentRow) -> int:
    seq = await store.record_intent(one)
    assert isinstance(seq, int)
    return seq


async def choose_all(store: Store, who: str, wanted: Posture, reason: str = "", **about: Any) -> Posture | VersionMoved:
    """Every axis at once, if `wanted.epoch` is where the choice still stands."""
    change = PostureChange("c1", PostureChoice.build_from_posture(wanted).axes, reason=reason, **about)
    found = await store.write(
        partial(posture_changes.request_posture_change, principal=who, change=change, epoch=wanted.epoch)
    )
    return found if isinstance(found, VersionMoved) else found.apply_to(Posture())


async def posture_of(store: Store, who: str) -> Posture | None:
    """What somebody chose, over what is usual; None where nothing ever was."""
    choice = await store.read(partial(posture.load_choice, principal=who))
    return choice and choice.apply_to(Posture())


async def heard(what: Callable[[], Any], within: int = 3000) -> bool:
    """Did that come true, within so many turns of a fiftieth of a second?"""
    for _ in range(within):
        if what():
            return True
        await anyio.sleep(0.02)
    return False
