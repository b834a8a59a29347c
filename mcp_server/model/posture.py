"""What has the user chosen? Six axes, independent of each other, and the stage that the policy observes.

A choice names only the axes that were chosen; the others keep the operator's defaults. Pending changes, and changes for
one unit, are part of the choice, so that they are stored, sealed and changed together with it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace


class Ordered(StrEnum):
    """An axis whose members are ordered, least permission first."""

    rank: int

    def __init__(self, *_: str) -> None:
        # The position in the order, counted once while the members are made: every decision needs it.
        self.rank = len(type(self).__members__)

    def covers(self, needed: Self) -> bool:
        return self.rank >= needed.rank


class Profile(Ordered):
    RESTRICTED = "restricted"
    NORMAL = "normal"
    TRUSTED = "trusted"
    UNRESTRICTED = "unrestricted"

    @property
    def next_higher(self) -> "Profile":
        """The next profile up; for the highest profile, that profile itself."""
        order = tuple(Profile)
        return order[min(self.rank + 1, len(order) - 1)]


class WorkMode(StrEnum):
    CHAT = "chat"
    PLAN = "plan"
    BUILD = "build"
    REVIEW = "review"
    REPAIR = "repair"
    RESEARCH = "research"


class RunControl(StrEnum):
    MANUAL = "manual"
    ASSISTED = "assisted"
    AUTONOMOUS = "autonomous"


class ModelMode(StrEnum):
    FAST = "fast"
    SMART = "smart"
    DEEP = "deep"


class AiMode(StrEnum):
    CHAT = "chat"
    AGENT = "agent"


class Surface(StrEnum):
    """How the person is connected. Observed with every call, never chosen, and never part of a decision."""

    TUI = "tui"
    WEB = "web"
    HEADLESS = "headless"
    RPC = "rpc"


class Stage(StrEnum):
    WARMUP = "warmup"
    ACT = "act"
    TOOL_FOLLOWUP = "tool_followup"
    MICRO_STEP = "micro_step"
    DELIVERY_CHECK = "delivery_check"
    QA_REVIEW = "qa_review"


class Posture(Struct, frozen=True):
    work_mode: WorkMode = WorkMode.BUILD
    run_control: RunControl = RunControl.AUTONOMOUS
    profile: Profile = Profile.NORMAL
    model_mode: ModelMode = ModelMode.SMART
    ai_mode: AiMode = AiMode.AGENT
    reasoning: bool = False
    epoch: int = 0
    """Increases with every change, so that a decision can be checked against the posture it was made under."""

    @classmethod
    def most_restricted(cls) -> Self:
        """What holds if the person's choice cannot be read: only reading, and a question before anything else."""
        return cls(
            work_mode=WorkMode.REVIEW,
            run_control=RunControl.MANUAL,
            profile=Profile.RESTRICTED,
            ai_mode=AiMode.CHAT,
        )

    def cap_profile(self, ceiling: Profile) -> Self:
        """Apply the operator's ceiling, which narrows and never widens."""
        return self if ceiling.covers(self.profile) else replace(self, profile=ceiling)


Value: TypeAlias = StrEnum | bool

AXES: Mapping[str, type[StrEnum] | type[bool]] = {
    "work_mode": WorkMode,
    "run_control": RunControl,
    "profile": Profile,
    "model_mode": ModelMode,
    "ai_mode": AiMode,
    "reasoning": bool,
}
"""What a person chooses. No axis implies another."""
SWITCH = {"on": True, "off": False}
NARROWEST_FIRST: Mapping[str, tuple[Value, ...]] = {
    # In this order: reads; reads and uses the network; writes plans; asks before it writes; works in the workspace
    # only; no limit.
    "work_mode": (
        *(WorkMode.REVIEW, WorkMode.RESEARCH, WorkMode.PLAN),
        *(WorkMode.CHAT, WorkMode.REPAIR, WorkMode.BUILD),
    ),
    "run_control": tuple(RunControl),
    "profile": tuple(Profile),
    # More thought costs money, but allows nothing.
    "model_mode": tuple(ModelMode),
    "ai_mode": tuple(AiMode),
    # The stages of reasoning hold tools back for a while.
    "reasoning": (True, False),
}
"""Every value of each axis, in the order in which they allow more."""


WIDTHS: Mapping[str, Mapping[Value, int]] = {
    "work_mode": {
        WorkMode.PLAN: 0,
        WorkMode.REVIEW: 0,
        WorkMode.RESEARCH: 0,
        WorkMode.CHAT: 1,
        WorkMode.BUILD: 2,
        WorkMode.REPAIR: 2,
    },
    "run_control": {RunControl.MANUAL: 0, RunControl.ASSISTED: 1, RunControl.AUTONOMOUS: 2},
    "profile": {profile: profile.rank for profile in Profile},
    "model_mode": dict.fromkeys(ModelMode, 0),
    "ai_mode": {AiMode.CHAT: 0, AiMode.AGENT: 1},
    "reasoning": {True: 0, False: 1},
}
"""How much each value allows: reading, asking first, acting. Having to reason first is narrower."""


def is_wider(axis: str, value: Value, current: Value) -> bool:
    """True if the value allows more. A value without a width counts as wider than any other."""
    widths = WIDTHS.get(axis, {})
    if value == current:
        return False
    return value not in widths or current not in widths or widths[value] > widths[current]


def get_narrower_value(axis: str, one: Value, other: Value) -> Value:
    """Return the one of two values that allows less."""
    order = NARROWEST_FIRST[axis]
    return min(one, other, key=order.index)


class ChangeScope(StrEnum):
    """When a change comes into force. A call that is already running is never affected."""

    NOW = "now"
    AFTER_CURRENT_TOOL = "after-current-tool"
    AFTER_CURRENT_UNIT = "after-current-unit"
    NEXT_MILESTONE = "next-milestone"
    FOR_NEXT_UNIT = "for-next-unit"


class ChangeSource(StrEnum):
    """Where a change came from."""

    TERMINAL = "terminal"
    PROMPT = "prompt"
    DOCTOR = "doctor"


class OnFailure(StrEnum):
    """What happens if menugate finds itself out of order."""

    AUTO = "auto"
    ASK = "ask"
    LOG_ONLY = "log-only"


class PostureChange(Struct, frozen=True):
    """What was asked for: which axes, from when on, why, and from where."""

    id: str
    axes: Mapping[str, Value]
    scope: ChangeScope = ChangeScope.NOW
    reason: str = ""
    door: ChangeSource = ChangeSource.TERMINAL
    session: str = ""
    """The one session whose units count; empty if those of every session do."""
    calls: tuple[tuple[int, str], ...] = ()
    """The calls it waits for, each with the process it runs in."""
    unconfirmed: bool = False
    """It needs the person's confirmation at the terminal before anything else."""
    asked: int = 0
    """When, in nanoseconds."""
    units: int = 0
    """Instead of changing an axis, it resumes what is paused, in `assisted` for this many units. Only ever kept
    unconfirmed."""
    tries: int = 0
    """How often the client that asked for it came back without a proper answer."""
    unasked: bool = False
    """It may only narrow, because nobody asked the person."""


class TemporaryChange(Struct, frozen=True):
    """In force for one unit. `before` is what comes back; None if nothing was chosen."""

    change: PostureChange
    before: Mapping[str, Value | None]
    unasked: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """What comes back into `PostureChoice.unasked`."""


class PostureChoice(Struct, frozen=True):
    axes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    epoch: int = 0
    waiting: tuple[PostureChange, ...] = ()
    trials: tuple[TemporaryChange, ...] = ()
    claims: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """What the state claims was chosen, though it was not written with this account's key. Axis by axis it narrows what
    would hold otherwise and widens nothing, until the person chooses a value of that axis at a terminal."""
    unasked: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """What was chosen without asking the person. A value counts only while it allows no more than what would hold
    without it. Stored like any other choice, it would outlast a lower value that the operator sets later."""

    @classmethod
    def build_most_restricted(cls, epoch: int) -> Self:
        """What is left of a choice that cannot be read."""
        return cls(claims=cls.build_from_posture(Posture.most_restricted()).axes, epoch=epoch)

    @classmethod
    def build_from_posture(cls, posture: Posture) -> Self:
        """A choice of every axis, as it is in this posture."""
        return cls({axis: getattr(posture, axis) for axis in AXES}, posture.epoch)

    @property
    def has_pending_changes(self) -> bool:
        """True if it will still change by itself."""
        return bool(self.waiting or self.trials)

    @property
    def narrowing_claims(self) -> Mapping[str, Value]:
        """The claims that count: not those of axes on which the person tries another value for one unit."""
        tried = {axis for one in self.trials if one.change.door is ChangeSource.TERMINAL for axis in one.change.axes}
        return {axis: value for axis, value in self.claims.items() if axis not in tried}

    def find_narrowed_axes(self, usual: Posture) -> list[str]:
        """The axes that would be different without the claims."""
        if not self.claims:
            return []
        free, held = replace(self, claims={}).apply_to(usual), self.apply_to(usual)
        return [axis for axis in self.narrowing_claims if getattr(free, axis) != getattr(held, axis)]

    def find_chosen_values(self, usual: Posture) -> dict[str, Value]:
        """The chosen values that count, if this posture holds otherwise."""
        narrower = {
            axis: value
            for axis, value in self.unasked.items()
            if not is_wider(axis, value, self.axes.get(axis, getattr(usual, axis)))
        }
        return {**self.axes, **narrower}

    def apply_to(self, usual: Posture) -> Posture:
        chosen: dict[str, Any] = self.find_chosen_values(usual)
        for axis, value in self.narrowing_claims.items():
            chosen[axis] = get_narrower_value(axis, chosen.get(axis, getattr(usual, axis)), value)
        return replace(usual, **chosen, epoch=self.epoch)


def find_axis_value(axis: str, word: str) -> Value | None:
    """The value that a word names on that axis; None if it names none."""
    kind = AXES[axis]
    if kind is bool:
        return SWITCH.get(word)
    return next((one for one in list_axis_words(kind) if one == word), None)


def list_axis_words(kind: type[StrEnum] | type[bool]) -> tuple[Any, ...]:
    return tuple(kind) if issubclass(kind, StrEnum) else tuple(SWITCH)


def format_value(value: Value | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "default" if value is None else str(value)
