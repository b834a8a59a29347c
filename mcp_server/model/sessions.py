"""Where is one agent? Its mode, its stage, its run."""

from dataclasses import dataclass
from enum import StrEnum

from mcp_server.model.posture import Stage


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, as far as it was proved: the OS user on stdio, the token's label over HTTP."""

    name: str


class Holder(StrEnum):
    """What paused a run."""

    PERSON = "person"
    UNIT = "unit"
    """A unit is done, and run control `assisted` lets the person look at it first."""
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Hold:
    """A run is paused. It keeps its state and continues when the person says so."""

    by: Holder
    reason: str
    run: str = ""
    """The one run it is about, with which it ends; empty if it outlives the run."""
    at: int = 0
    stopped: bool = False
    """The run was stopped, not only paused: its state is cleared, and a new one begins after it."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session has one run, and one or more places in it. Its choices, its budget and its holds concern all of
    them."""

    id: str
    principal: str
    mode: str | None = None
    stage: Stage | None = Stage.ACT
    """None is an unknown stage, which allows only reading."""
    run: str = ""
    steps: int = 0
    version: int = 0
    flat: bool = False
    """Its list shows the tools of every mode at once, so no mode is the wrong one."""
    phase: str | None = None
    """The run's phase in the order of work that it chose; None if it chose none, and then nothing is narrowed."""
    pinned: bool = False
    """On an endpoint pinned to one mode, which can neither be left nor changed."""
    reasoned: bool = False
    """The thought that opens this run was accepted; required only if the person switched reasoning on."""
    held: Hold | None = None
    """Paused. Not stored with the session: a hold is the person's, and may concern all of their sessions."""
    place: str = ""
    """Which of the session's places this is: each has a mode, a menu handle, reads and todos of its own."""

    @property
    def key(self) -> str:
        """The key under which the place is stored; for a session's first place it is the session's own id."""
        return f"{self.id}{PLACE}{self.place}" if self.place else self.id

    @property
    def listing_key(self) -> tuple[object, ...]:
        """What the session's list of tools depends on."""
        return self.mode, self.stage, self.phase, self.reasoned


PLACE = "~"
"""Separates a session's id from that of one of its places. No id contains it."""


def parse_session_id(key: str) -> str:
    """Return the session that a place belongs to."""
    return key.partition(PLACE)[0]
