"""How do two sides compare? The ratio of their medians or the difference between them, and its range."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Ratio:
    """Our median over the bare server's, with the interval that contains 95 of 100 resamples."""

    ours: float
    bare: float
    value: float
    low: float
    high: float


def compare(ours: Sequence[float], bare: Sequence[float]) -> Ratio:
    """Compare one figure per round and side. Rounds are drawn as pairs: what slowed one side of a round slowed the
    other."""
    if len(ours) != len(bare) or not ours:
        raise ValueError(f"{len(ours)} rounds of one side cannot be compared with {len(bare)} of the other")
    dice = random.Random(0)  # the same rounds give the same interval
    rounds = range(len(ours))
    resampled = sorted(
        median(ours[i] for i in picks) / median(bare[i] for i in picks)
        for picks in (dice.choices(rounds, k=len(rounds)) for _ in range(RESAMPLES))
    )
    middle, other = median(ours), median(bare)
    return Ratio(middle, other, middle / other, _at(resampled, 0.025), _at(resampled, 0.975))


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more we need than the other side, with the interval that contains 95 of 100 resamples."""

    ours: float
    other: float
    value: float
    low: float
    high: float


def subtract(rounds: Sequence[tuple[float, float]]) -> Difference:
    """Compare the two figures of each round by the mean of their differences, without the outer quarters: what else
    the machine does falls on single rounds."""
    if not rounds:
        raise ValueError("there is no round to compare")
    dice = random.Random(0)  # the same rounds give the same interval
    added = [ours - other for ours, other in rounds]
    resampled = sorted(_average_middle_half(dice.choices(added, k=len(added))) for _ in range(RESAMPLES))
    ours, others = zip(*rounds, strict=True)
    value = _average_middle_half(added)
    return Difference(median(ours), median(others), value, _at(resampled, 0.025), _at(resampled, 0.975))


def _average_middle_half(figures: Sequence[float]) -> float:
    quarter = len(figures) // 4
    return fmean(sorted(figures)[quarter : len(figures) - quarter])


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def percentile(values: Sequence[float], share: float) -> float:
    return _at(sorted(values), share)


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a figure: at most this, or at least this."""

    bound: float
    at_least: bool = False

    def is_kept_by(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def is_kept_by_range(self, low: float, high: float) -> bool:
        """True if the whole range keeps it: what the machine's noise could hide counts against us."""
        return self.is_kept_by(low if self.at_least else high)

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"
