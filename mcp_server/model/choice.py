"""What did the person choose, what is still to come of it, and when does it come into force?

A choice names the axes that were chosen; the others stand where the operator put them. What waits, and what is in force
for one unit alone, are part of the choice, so that they are kept, sealed and changed together with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self, TypeAlias

from mcp_server.model.posture import AiMode, ModelMode, Posture, Profile, RunControl, WorkMode

Value: TypeAlias = StrEnum | bool

AXES: Mapping[str, type[StrEnum] | type[bool]] = {
    "work_mode": WorkMode,
    "run_control": RunControl,
    "profile": Profile,
    "model_mode": ModelMode,
    "ai_mode": AiMode,
    "reasoning": bool,
}
"""What a person chooses. None implies another. The surface is observed and not chosen."""
SWITCH = {"on": True, "off": False}


class Scope(StrEnum):
    """From when on a change holds. No call that runs is ever touched."""

    NOW = "now"
    AFTER_CURRENT_TOOL = "after-current-tool"
    AFTER_CURRENT_UNIT = "after-current-unit"
    NEXT_MILESTONE = "next-milestone"
    FOR_NEXT_UNIT = "for-next-unit"


class Door(StrEnum):
    """Where a person's word came in."""

    TERMINAL = "terminal"
    PROMPT = "prompt"
    DOCTOR = "doctor"


@dataclass(frozen=True, slots=True)
class Change:
    """What was asked for: some axes, from when on, why, and through which door."""

    id: str
    axes: Mapping[str, Value]
    scope: Scope = Scope.NOW
    reason: str = ""
    door: Door = Door.TERMINAL
    session: str = ""
    """The one session whose units count; empty where every one does."""
    calls: tuple[tuple[int, str], ...] = ()
    """The calls it waits for, each with the process it runs in."""
    unconfirmed: bool = False
    """It waits for the person's yes at the terminal before anything else."""
    asked: int = 0
    """When, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """In force for one unit. `before` is what comes back; None where nothing was chosen."""

    change: Change
    before: Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class Choice:
    axes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    epoch: int = 0
    waiting: tuple[Change, ...] = ()
    trials: tuple[Trial, ...] = ()

    @classmethod
    def least(cls, epoch: int) -> Self:
        """What is left of a choice that cannot be read."""
        return cls.whole(replace(Posture.most_restricted(), epoch=epoch))

    @classmethod
    def whole(cls, posture: Posture) -> Self:
        """Every axis chosen, as it is in this posture."""
        return cls({axis: getattr(posture, axis) for axis in AXES}, posture.epoch)

    @property
    def unsettled(self) -> bool:
        """Will something come of it by itself?"""
        return bool(self.waiting or self.trials)

    def over(self, usual: Posture) -> Posture:
        chosen: dict[str, Any] = dict(self.axes)
        return replace(usual, **chosen, epoch=self.epoch)


def value_of(axis: str, word: str) -> Value | None:
    """The value a word names on that axis; None where it names none."""
    kind = AXES[axis]
    if kind is bool:
        return SWITCH.get(word)
    return next((one for one in words_of(kind) if one == word), None)


def words_of(kind: type[StrEnum] | type[bool]) -> tuple[Any, ...]:
    return tuple(kind) if issubclass(kind, StrEnum) else tuple(SWITCH)


def word_of(value: Value | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "usual" if value is None else str(value)
