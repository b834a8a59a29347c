"""Where does one agent stand? Its mode, its stage, its run."""

from dataclasses import dataclass
from enum import StrEnum

from mcp_server.model.posture import Stage


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, as far as it was proved. The OS user on stdio, the token's label over HTTP."""

    name: str


class Holder(StrEnum):
    """What a run was paused by."""

    PERSON = "person"
    UNIT = "unit"
    """A unit is done, and run control `assisted` lets the person look at it first."""
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Hold:
    """A run is paused. It keeps its state and goes on when the person says so."""

    by: Holder
    reason: str
    run: str = ""
    """The one run it is about, with which it ends; empty where it outlives the run."""
    at: int = 0
    stopped: bool = False
    """The run was not only paused: what it had come to is cleared, and another one begins after it."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session has one run, and one or more places in it: what it chose, spent and waits for is about all of them."""

    id: str
    principal: str
    mode: str | None = None
    stage: Stage | None = Stage.ACT
    """None stands for a stage nobody knows, which allows reading only."""
    run: str = ""
    steps: int = 0
    version: int = 0
    flat: bool = False
    """Its list shows the tools of every mode at once, so that no mode is the wrong one."""
    phase: str | None = None
    """Where the run is in the order of work it chose; None where it chose none, and nothing is narrowed."""
    pinned: bool = False
    """On an endpoint pinned to one mode: it can neither be left nor changed."""
    reasoned: bool = False
    """The thought that opens this run was accepted; asked only where the person switched reasoning on."""
    held: Hold | None = None
    """Paused. Not written down with the session: it is the person's, and may be about all of their sessions."""
    place: str = ""
    """Which of the session's places this is: each has a mode, a menu handle, reads and todos of its own."""

    @property
    def key(self) -> str:
        """What the place is written down by; that of a session's first place is the session's own name."""
        return f"{self.id}{PLACE}{self.place}" if self.place else self.id


PLACE = "~"
"""Between a session's name and that of one of its places. No name has it."""


def parse_session_id(key: str) -> str:
    """The session that a place belongs to."""
    return key.partition(PLACE)[0]
