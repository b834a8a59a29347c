"""How much does this run do? A twentieth of what repeats or loads in `make test`, all of it in `make attack`.

Whoever asks is marked `heavy`, because `make attack` runs those tests and no others.
"""

import os
from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

FULL = os.environ.get("TEST_SIZE") == "full"
SHARE = 20
STRIDE = 23
"""A twentieth at most, and a prime, so that a walk over a product meets every value of each of its factors."""


def scale(full: int, least: int = 1) -> int:
    """How many of `full` repetitions to make: never fewer than `least`, below which the test would prove nothing."""
    return full if FULL else max(least, full // SHARE)


def sample(cases: Iterable[T]) -> Iterable[T]:
    """Every case of a long list of them, or one in twenty-three."""
    return cases if FULL else islice(cases, 0, None, STRIDE)
