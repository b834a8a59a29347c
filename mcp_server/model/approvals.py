"""What did the person approve? One call, or one tool for a while, and nothing that merely looks like it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.model.parts import asdict, list_parts
from mcp_server.model.posture import AXES, Posture, Profile, Stage
from mcp_server.model.sessions import Session
from mcp_server.model.text import quote_exactly, quote_text
from mcp_server.model.tools import ASKING, Demand, Effect, LossKind

NEWER = frozenset({"exact", "place", "loose", "posture", "moment"})
"""Fields that older records of a call do not have."""
MAX_NAMED_CHARS, MAX_DIFFERENCES = 300, 3


class ApprovalChannel(StrEnum):
    """How a person is asked: through the client, or only at a terminal."""

    ELICIT = "elicit"
    OUT_OF_BAND = "out_of_band"


class ApprovalScope(StrEnum):
    ONCE = "once"
    """Only this call."""
    SESSION = "session"
    """What `describe_session_scope` says."""
    ALWAYS = "always"
    """Only this call; a rule that was written with the answer allows the same call from then on. Only a terminal offers
    this."""


class ApprovalAnswer(StrEnum):
    OPEN = "open"
    YES = "yes"
    NO = "no"
    CLOSED = "closed"
    """Asked through the client and not answered. Only older records have this: now such a question stays open."""


class AnsweredBy(StrEnum):
    """Where an answer came from. A client answers for the person at it, if there is one."""

    CLIENT = "client"
    PERSON = "person"


class LostPath(NamedTuple):
    """What a call deletes or overwrites, as an approval is bound to it."""

    does: LossKind
    path: str
    """As the call names it; empty if it stands for several, or contains a secret."""
    fits: bool = False
    """It is a pattern."""
    leads: str = ""
    """Digest of where it leads."""
    holds: str = ""
    """Digest of what is there."""

    def describe_difference(self, now: Self) -> str:
        name = quote_exactly(self.path, MAX_NAMED_CHARS) if self.path else "what it deletes or overwrites"
        if self.path and not self.fits and self.leads != now.leads:
            return f"{name} has come to lead elsewhere"
        return f"{'what fits ' if self.fits and self.path else ''}{name} has changed"


class ApprovalMoment(Struct, frozen=True):
    """When an approval for once holds, besides its arguments. A session approval is bound only to where the lost paths
    lead, and says that code may load files which nobody names."""

    loads: bool = False
    """The call runs code of the workspace, which may load such files."""
    lost: tuple[LostPath, ...] = ()
    changed: str = ""
    """The last call that may have changed something; empty if that does not matter."""
    beside: tuple[str, ...] = ()
    """What runs at the same time and may change files before this call does."""

    def describe_difference(self, before: Self) -> str:
        """Say what is no longer as it was; empty if nothing."""
        if self.lost != before.lost:
            pairs = zip(before.lost, self.lost, strict=False)
            says = [then.describe_difference(now) for then, now in pairs if then != now]
            return " and ".join(says[:MAX_DIFFERENCES]) or "what it deletes or overwrites has changed"
        if self.changed != before.changed:
            return f"{self.changed} may have changed what it runs"
        begun = [one for one in self.beside if one not in before.beside]
        ended = [one for one in before.beside if one not in self.beside]
        says = [f"{quote_text(one)} runs now, and may change what it runs" for one in begun[:1]]
        says += [f"{quote_text(one)} has ended, and may have changed what it runs" for one in ended[:1]]
        return " and ".join(says)


class ApprovedCall(Struct, frozen=True):
    """The call that needs an approval: everything that must still hold when the approval is used."""

    principal: str
    session: str
    """Empty if the call's connection keeps no session and the call gave no handle."""
    run: str
    step: int
    stage: Stage | None
    epoch: int
    tool: str
    effect: Effect
    profile: Profile
    arguments_sha256: str
    """Covers what decides: the arguments that are not incidental, and where their paths lead."""
    lasting: bool
    """The approval may cover the whole session. Never for what destroys or changes production, nor for a protected
    place."""
    exact: bool = False
    """A session approval covers only these arguments: with others, a tool that runs commands could do anything at
    all."""
    place: str = ""
    """The place of the session that the call was made in."""
    loose: bool = False
    """It came without a handle, and so perhaps over a connection that makes no second call. An approval for once then
    covers any connection of the same principal that repeats the call."""
    posture: str = ""
    """The posture it was asked under, in words: servers with other flags have another posture in the same epoch."""
    moment: ApprovalMoment = ApprovalMoment()

    def describe_session_scope(self, names_files: bool = True) -> str:
        """Say what a session approval covers, wherever it is offered or given. `names_files`: the question does."""
        similar = (
            f"every `{self.tool}` call with the effect `{self.effect}` that needs no profile above `{self.profile}`"
        )
        calls = (
            f"this `{self.tool}` call and every repetition of it"
            if self.exact
            else f"{similar} and may be approved for a session"
        )
        if self.exact and self.moment.changed:
            named = ", while the files that the question names stay the same (files that these load may change)"
            calls += named if names_files else " (files that it loads may change)"
        return f"{calls}, in this session, until its run or stage ends, the posture changes or the approval expires"

    @classmethod
    def build_from_demand(cls, session: Session, posture: Posture, tool: str, demand: Demand, digest: str) -> Self:
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
            lasting=not demand.always_asks and not demand.once and demand.effect not in ASKING,
            place=session.place,
            posture=" ".join(str(getattr(posture, axis)) for axis in AXES),
        )


class Approval(Struct, frozen=True):
    """A question to the person, and its outcome."""

    id: str
    wanted: ApprovedCall
    message: str
    """What the person is shown, wherever they are asked."""
    asked: int
    expires: int
    answer: ApprovalAnswer = ApprovalAnswer.OPEN
    scope: ApprovalScope = ApprovalScope.ONCE
    way: AnsweredBy | None = None
    reason: str = ""
    used: int = 0
    """How many calls it has let through."""
    whole: str = ""
    """The whole question, if the message is not all of it. Unless the message is `brief`, it can be approved only after
    the terminal has shown this."""
    shown: bool = False
    """The terminal has shown the whole question."""
    tries: int = 0
    """How often a client came back without a proper answer. An automatic reply uses up all tries at once."""
    void: str = ""
    """Why it lets nothing through any more, although it has not expired: what changed since it was asked."""
    process: str = ""
    """The server process that asked; empty in older records."""
    brief: bool = False
    """The message lacks nothing but long contents of files, so a form may show it. `whole` has them."""
    host: str = ""
    """What the client that asked calls itself."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The question for programs: its arguments, what their paths lead to, and the rule. Empty in older records."""

    def covers(self, call: ApprovedCall, carried: bool = False) -> bool:
        """True if this is the call that the question was about.

        `carried`: the client brought back the sealed question. That proves what otherwise the session proves, so the
        call may come over a connection that keeps no session, or to a server started since.
        """
        approved = self.wanted
        same_place = (call.session, call.run) == (approved.session, approved.run)
        once = self.scope is not ApprovalScope.SESSION
        alike = approved.loose and call.loose and approved.posture == call.posture and once
        if not (same_place or ((carried or alike) and call.session != approved.session)):
            return False
        if any(getattr(call, name) != getattr(approved, name) for name in ("principal", "stage", "epoch", "tool")):
            return False
        same_arguments = call.arguments_sha256 == approved.arguments_sha256
        if once:
            # What was refused stays refused, whatever has changed since.
            return same_arguments and (self.answer is ApprovalAnswer.NO or call.moment == approved.moment)
        if [one.leads for one in call.moment.lost] != [one.leads for one in approved.moment.lost]:
            return False
        no_more = call.lasting and call.effect is approved.effect and approved.profile.covers(call.profile)
        return no_more and (same_arguments or not (call.exact or approved.exact))

    def find_outdating_change(self, call: ApprovedCall, carried: bool = False) -> str:
        """Say what has changed since, if nothing else keeps this from covering the call."""
        if self.scope is ApprovalScope.SESSION or self.answer is ApprovalAnswer.NO:
            return ""
        as_then = replace(call, moment=self.wanted.moment)
        return call.moment.describe_difference(self.wanted.moment) if self.covers(as_then, carried) else ""

    def is_lapsed(self, now: int) -> bool:
        """True if void or expired. A question asked in the future, because the clock was set back, counts as
        expired."""
        return bool(self.void) or not self.asked <= now < self.expires

    def describe_session_scope(self) -> str:
        """Say what an approval for the session covers."""
        targets = self.details.get("targets")
        return self.wanted.describe_session_scope(
            targets is None or any(target.get("kind") == "file" for target in targets)
        )

    @property
    def is_unread(self) -> bool:
        """True if it is too long for a form and the person has not been shown all of it."""
        return bool(self.whole) and not self.shown and not self.brief

    @property
    def is_spent(self) -> bool:
        return self.scope is not ApprovalScope.SESSION and self.used > 0

    def is_waiting(self, now: int) -> bool:
        """True if the person can still answer it and nobody has."""
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


def parse_approval(stored: Mapping[str, Any]) -> Approval:
    """Parse a stored approval. Raises if it is not one."""
    call: dict[str, Any] = dict(stored["wanted"])
    # Records of older versions lack the newer fields, which then have their defaults.
    if not call.keys() <= {*list_parts(ApprovedCall)} <= call.keys() | NEWER:
        raise ValueError("not an approval")
    call["stage"] = Stage(call["stage"]) if call["stage"] is not None else None
    moment = call.get("moment")
    if moment is not None:
        lost = tuple(LostPath(*one) for one in moment.get("lost", ()))
        loads = moment.get("loads", bool(moment["changed"]))
        call["moment"] = ApprovalMoment(loads, lost, moment["changed"], tuple(moment["beside"]))
    call["effect"], call["profile"] = Effect(call["effect"]), Profile(call["profile"])
    plain = {name: value for name, value in stored.items() if name not in ("wanted", "answer", "scope", "way")}
    return replace(
        Approval(wanted=ApprovedCall(**call), **plain),
        answer=ApprovalAnswer(stored["answer"]),
        scope=ApprovalScope(stored["scope"]),
        way=AnsweredBy(stored["way"]) if stored["way"] is not None else None,
    )
