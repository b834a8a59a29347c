"""What state is one agent in? Its mode, stage and run."""

from enum import StrEnum

from msgspec import Struct

from mcp_server.model.posture import Stage


class Holder(StrEnum):
    """What paused a run."""

    PERSON = "person"
    UNIT = "unit"
    """A unit is done, and run control `assisted` lets the person look at it first."""
    BUDGET = "budget"


class Hold(Struct, frozen=True):
    """A run is paused. It keeps its state and continues when the person says so."""

    by: Holder
    reason: str
    run: str = ""
    """The run that it pauses and ends with; empty if it outlives the run."""
    at: int = 0
    stopped: bool = False
    """The run was stopped, not only paused: its state is cleared, and a new one begins after it."""


class Session(Struct, frozen=True):
    """A session has one run, and one or more places. Its settings, its budget and its holds apply to all of them."""

    id: str
    principal: str
    mode: str | None = None
    stage: Stage | None = Stage.ACT
    """None is an unknown stage, which allows only reading."""
    run: str = ""
    steps: int = 0
    version: int = 0
    flat: bool = False
    """Its list shows the tools of every mode at once, so no tool is in the wrong mode."""
    phase: str | None = None
    """The run's current phase; None if the run uses no phases, which then narrow nothing."""
    pinned: bool = False
    """True on an endpoint pinned to one mode, which the session cannot leave or change."""
    reasoned: bool = False
    """True if the thought that opens this run was accepted. Required only if the user turned reasoning on."""
    held: Hold | None = None
    """The hold that pauses it. Not stored with the session, because it belongs to the user and may apply to all of
    their sessions."""
    added: tuple[str, ...] = ()
    """The tools that it added to its list with `request_tools`, until the run ends. They are in every mode then, which
    allows no more than their own modes do."""
    place: str = ""
    """Which of the session's places this is: each has a mode, a menu handle, reads and todos of its own."""

    @property
    def key(self) -> str:
        """The key under which the place is stored; for a session's first place it is the session's own id."""
        return f"{self.id}{PLACE}{self.place}" if self.place else self.id

    @property
    def listing_key(self) -> tuple[object, ...]:
        """What the session's list of tools depends on."""
        return self.mode, self.stage, self.phase, self.reasoned, self.added


PLACE = "~"
"""Separates a session's id from that of one of its places. No id contains it."""


def parse_session_id(key: str) -> str:
    """Return the session that a place belongs to."""
    return key.partition(PLACE)[0]
