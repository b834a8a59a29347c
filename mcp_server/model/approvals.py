"""What did the person say yes to? One call, or one tool for a while, and nothing that merely looks like it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, Self

from mcp_server.model.posture import AXES, Posture, Profile, Stage
from mcp_server.model.sessions import Session
from mcp_server.model.tools import ASKING, Demand, Effect

NEWER = frozenset({"exact", "place", "loose", "posture"})
"""What was not asked of a call from the beginning."""


class ApprovalChannel(StrEnum):
    """How a person is asked: through the client, or past it."""

    ELICIT = "elicit"
    OUT_OF_BAND = "out_of_band"


class ApprovalScope(StrEnum):
    ONCE = "once"
    """This very call."""
    SESSION = "session"
    """This tool in this session, doing no more than what was asked about; of what runs commands, this command."""


class ApprovalAnswer(StrEnum):
    OPEN = "open"
    YES = "yes"
    NO = "no"
    CLOSED = "closed"
    """Asked through the client and not answered. Only older records have it: such a question stays open now."""


class AnsweredBy(StrEnum):
    """By which door an answer came. A client answers for whoever sits at it, and that may be nobody."""

    CLIENT = "client"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """The call a yes is needed for: everything that must still be so when the yes is used."""

    principal: str
    session: str
    """Empty where the call's connection remembers nothing and no handle was given."""
    run: str
    step: int
    stage: Stage | None
    epoch: int
    tool: str
    effect: Effect
    profile: Profile
    arguments_sha256: str
    """Of what decides: the arguments that are not incidental, and where their paths lead."""
    lasting: bool
    """May a yes be for the whole session? Never for what destroys or changes production, nor for a protected place."""
    exact: bool = False
    """A yes for the session is for these arguments alone: what runs commands would do anything at all with others."""
    place: str = ""
    """The place of the session that it was asked through."""
    loose: bool = False
    """It came without a handle, and so perhaps over a connection that makes no second call: a yes for once is for
    whichever connection of the same principal makes that call again."""
    posture: str = ""
    """What held when it was asked, in words: servers with other flags hold to another posture in the same epoch."""

    @property
    def session_scope(self) -> str:
        """What a yes for the session covers, in a word."""
        return "command" if self.exact else "tool"

    @classmethod
    def build_from_demand(cls, session: Session, posture: Posture, tool: str, demand: Demand, digest: str) -> Self:
        unprotected = demand.confirm is None or demand.waivable
        return cls(
            principal=session.principal,
            session=session.id,
            run=session.run,
            step=session.steps,
            stage=session.stage,
            epoch=posture.epoch,
            tool=tool,
            effect=demand.effect,
            profile=demand.profile,
            arguments_sha256=digest,
            lasting=unprotected and demand.effect not in ASKING,
            place=session.place,
            posture=" ".join(str(getattr(posture, axis)) for axis in AXES),
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to the person, and what became of it."""

    id: str
    wanted: ApprovedCall
    message: str
    """What the person is shown, by every door."""
    asked: int
    expires: int
    answer: ApprovalAnswer = ApprovalAnswer.OPEN
    scope: ApprovalScope = ApprovalScope.ONCE
    way: AnsweredBy | None = None
    reason: str = ""
    used: int = 0
    """How many calls it has let through."""
    whole: str = ""
    """All of the question, where it is too long for a form: the terminal shows it, and only then may it be a yes."""
    shown: bool = False
    """The terminal has shown the whole."""
    tries: int = 0
    """How often a client came back with something that was no answer; what comes by itself counts as often as it may
    come at all."""
    void: str = ""
    """Why it opens nothing any more, before its time is up: what changed since it was asked."""

    def covers(self, call: ApprovedCall, carried: bool = False) -> bool:
        """Is this the call the question was about?

        `carried`: the client brought back the sealed question, which proves what a session otherwise does: it may come
        over a connection that remembers nothing, or to a server that was started since.
        """
        asked = self.wanted
        same_place = (call.session, call.run) == (asked.session, asked.run)
        alike = asked.loose and call.loose and asked.posture == call.posture and self.scope is ApprovalScope.ONCE
        if not (same_place or ((carried or alike) and call.session != asked.session)):
            return False
        if (call.principal, call.stage, call.epoch, call.tool) != (
            asked.principal,
            asked.stage,
            asked.epoch,
            asked.tool,
        ):
            return False
        same = call.arguments_sha256 == asked.arguments_sha256
        if self.scope is ApprovalScope.ONCE:
            return same
        no_more = call.lasting and call.effect is asked.effect and asked.profile.covers(call.profile)
        return no_more and (same or not (call.exact or asked.exact))

    def is_lapsed(self, now: int) -> bool:
        """Void or expired; or asked in a future that a clock set back has made of the past, which counts as expired."""
        return bool(self.void) or not self.asked <= now < self.expires

    @property
    def is_unread(self) -> bool:
        """It is too long for a form, and the person has not had all of it before their eyes."""
        return bool(self.whole) and not self.shown

    @property
    def is_spent(self) -> bool:
        return self.scope is ApprovalScope.ONCE and self.used > 0

    def is_waiting(self, now: int) -> bool:
        """Can the person still answer it, and did nobody so far?"""
        return self.answer is ApprovalAnswer.OPEN and not self.used and not self.is_lapsed(now)

    def is_redeemable(self, call: ApprovedCall, now: int, carried: bool = False) -> bool:
        return (
            self.answer is ApprovalAnswer.YES
            and not self.is_spent
            and not self.is_lapsed(now)
            and self.covers(call, carried)
        )

    def to_fields(self) -> dict[str, Any]:
        return asdict(self)


def parse_approval(found: Mapping[str, Any]) -> Approval:
    """The approval that was written down. Raises where it is none."""
    wanted: dict[str, Any] = dict(found["wanted"])
    # Those of an earlier menugate know nothing of these; what is asked of a call now decides for them too.
    if not wanted.keys() <= {one.name for one in fields(ApprovedCall)} <= wanted.keys() | NEWER:
        raise ValueError("not an approval")
    wanted["stage"] = Stage(wanted["stage"]) if wanted["stage"] is not None else None
    wanted["effect"], wanted["profile"] = Effect(wanted["effect"]), Profile(wanted["profile"])
    plain = {name: value for name, value in found.items() if name not in ("wanted", "answer", "scope", "way")}
    way = AnsweredBy(found["way"]) if found["way"] is not None else None
    return replace(
        Approval(wanted=ApprovedCall(**wanted), **plain),
        answer=ApprovalAnswer(found["answer"]),
        scope=ApprovalScope(found["scope"]),
        way=way,
    )
