"""What has the person chosen? Six axes, none of which implies another, and the stage the policy observes."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self


class Ordered(StrEnum):
    """An axis whose members stand in order, least permission first."""

    rank: int

    def __init__(self, *_: str) -> None:
        # The place in the order, counted while the members are made: it is asked for in every decision.
        self.rank = len(type(self).__members__)

    def covers(self, needed: Self) -> bool:
        return self.rank >= needed.rank


class Profile(Ordered):
    RESTRICTED = "restricted"
    NORMAL = "normal"
    TRUSTED = "trusted"
    UNRESTRICTED = "unrestricted"

    @property
    def above(self) -> "Profile":
        """The next one up; the highest is its own."""
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


@dataclass(frozen=True, slots=True)
class Posture:
    work_mode: WorkMode = WorkMode.BUILD
    run_control: RunControl = RunControl.AUTONOMOUS
    profile: Profile = Profile.NORMAL
    model_mode: ModelMode = ModelMode.SMART
    ai_mode: AiMode = AiMode.AGENT
    reasoning: bool = False
    surface: Surface = Surface.HEADLESS
    epoch: int = 0
    """Moves with every change, so that a decision can be checked against the posture it was made under."""

    @classmethod
    def most_restricted(cls) -> Self:
        """What holds when the person's choice cannot be read: reading alone, and a question before anything else."""
        return cls(
            work_mode=WorkMode.REVIEW,
            run_control=RunControl.MANUAL,
            profile=Profile.RESTRICTED,
            ai_mode=AiMode.CHAT,
        )

    def capped(self, ceiling: Profile) -> Self:
        """The operator's ceiling narrows and never widens."""
        return self if ceiling.covers(self.profile) else replace(self, profile=ceiling)
