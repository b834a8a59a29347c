"""What is stored? The values that go into the store and come out of it.

A ledger row never contains arguments or results, only their digests and sizes.
"""

import time
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from msgspec import Struct

from mcp_server.model.posture import Posture, PostureChoice, Surface
from mcp_server.model.results import Code

if TYPE_CHECKING:
    from mcp_server.model.policy import Decision
    from mcp_server.model.sessions import Hold, Session

LET_GO = "let go"
"""The kind of note that stands for others, since deleted."""


class Clock(Protocol):
    def now_ns(self) -> int: ...


class WallClock:
    now_ns = staticmethod(time.time_ns)


class RowKind(StrEnum):
    START = "start"
    STOP = "stop"
    INTENT = "intent"
    OUTCOME = "outcome"
    REFUSAL = "refusal"
    QUESTION = "question"
    ANSWER = "answer"
    """The answer of the person, or of the client in their name, to a question."""
    REDEEMED = "redeemed"
    """An approval was used up by the call whose intent it names."""
    DELIVERY = "delivery"
    """A run was completed. Nothing that follows reverts it."""
    REPORT = "report"
    """A delivered run was reviewed."""
    TRANSITION = "transition"
    HEALTH = "health"
    """menugate's self-check found a problem."""
    RECORD = "record"
    """A pack's document was written."""
    SUMMARY = "summary"
    """A summary of a run so far was made, for whoever continues it."""
    TRUST = "trust"
    """The person trusts the folder's own files, or no longer does."""
    ATTEMPT = "attempt"
    """A program started by a server tried to speak for the person, and was refused."""
    RULES = "rules"
    """A running server adopted what the person wrote, or continues with what was valid before."""
    SEGMENT = "segment"
    """This ledger begins beside, or after, one that another key sealed."""
    ADOPTION = "adoption"
    """The person chose a posture after that."""
    ALARM = "alarm"
    """At a start the ledger did not match its anchor: tampering, or a damaged disk."""


class Origin(Struct, frozen=True):
    """Where a call came from, as far as is known."""

    conversation: str = ""
    client: str = ""
    transport: str = ""
    surface: Surface = Surface.HEADLESS
    passing: bool = False
    """No session connects this call with the next one."""
    within: int | None = None
    """The row of the call that makes this one while it runs."""


class Judged(Struct, frozen=True):
    """A call and what was decided about it."""

    kind: ClassVar[RowKind]

    session: "Session"
    posture: Posture
    tool: str
    decision: "Decision"
    origin: Origin = Origin()
    tool_count: int = 0
    arguments_sha256: str = ""
    arguments_bytes: int = 0
    carrier: str | None = None
    """The tool that carried the call here, if it was not called by its own name."""
    glance: str = ""
    """What the call is about, for a person: kept beside the ledger for a while, not in it. Empty if nothing is kept."""


class IntentRow(Judged, frozen=True):
    """This call is about to run. Durable before it does."""

    kind = RowKind.INTENT


class RefusalRow(Judged, frozen=True):
    """This call did not run."""

    kind = RowKind.REFUSAL


class QuestionRow(Judged, frozen=True):
    """This call waits for the person."""

    kind = RowKind.QUESTION
    question: str = ""


class OutcomeRow(Struct, frozen=True):
    """How a call ended. Session, run and tool are repeated, so that a filter finds both rows of a call."""

    intent: int
    ending: str
    """`done`, `problem`, `question` or `cancelled`."""
    code: Code | None = None
    latency_us: int = 0
    result_bytes: int = 0
    shown_bytes: int = 0
    session: str = ""
    tool: str = ""
    run: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    """What is worth remembering of the call, as kind and text: kept beside the ledger, not in it."""
    tested: str = ""
    """`passed` or `failed`, if the call ran tests."""
    hosts: tuple[str, ...] = ()
    """The hosts that the call turned to, with their ports, without secrets."""


class PostureMoved(Struct, frozen=True):
    """The posture changed since the decision: nothing was written, decide again."""

    epoch: int


class ApprovalLapsed(Struct, frozen=True):
    """The approval that a call relies on does not count: nothing was written, nothing runs."""

    why: str


class RunPaused(Struct, frozen=True):
    """The run was paused since the decision: nothing was written, decide again."""

    hold: "Hold"


Begun: TypeAlias = int | PostureMoved | ApprovalLapsed | RunPaused
"""The number of the row that a call begins with, or why it does not begin."""


class VersionMoved(Struct, frozen=True):
    """Someone else was first: nothing was written; this is the current version."""

    current: "Session | PostureChoice | None"


class Condition(Struct, frozen=True):
    """The state's condition when it was opened."""

    fresh: bool = False
    lost: str = ""
    """Where the damaged file was put, or what is known of one that is gone. Until the person chooses a posture again,
    the most restricted one applies."""
    alarms: tuple[str, ...] = ()
    unfinished: int = 0
    """Calls of a process that ended without recording an outcome."""


class Row(Struct, frozen=True):
    """One row of the ledger, as stored."""

    seq: int
    hash: str
    body: str
    fields: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.fields.get("kind", ""))

    @property
    def at(self) -> int:
        at = self.fields.get("at", 0)
        return at if isinstance(at, int) else 0


class LedgerFilter(Struct, frozen=True):
    """Which rows of the ledger? All given conditions must hold; `tail` keeps only the last of what matches."""

    session: str | None = None
    tool: str | None = None
    code: str | None = None
    run: str | None = None
    principal: str | None = None
    mode: str | None = None
    stage: str | None = None
    verdict: str | None = None
    layer: str | None = None
    rule: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    before: int | None = None
    """Only rows before this one."""
    kinds: tuple[str, ...] = ()
    tail: int | None = None


class Reply(Struct, frozen=True):
    """What the person answered to a message."""

    text: str
    at: int = 0
    session: str = ""
    """The key of the session's place whose next call takes it along; empty if any of the principal's may, because that
    one is over."""


class Message(Struct, frozen=True):
    """A message left for the person."""

    id: str
    at: int
    session: str
    text: str
    attachments: tuple[str, ...] = ()
    read: bool = False
    """The person has seen it."""
    principal: str = ""
    """Whose agent left it."""
    asks: bool = False
    """The model waits for an answer, or would if it could."""
    reply: Reply | None = None
    by_handle: bool = False
    """Only a menu handle leads back to the session that left it."""


class StoredSession(Struct, frozen=True):
    """A session, with what only the store knows about it."""

    session: "Session"
    handle_digest: str | None
    created: int
    used: int
