"""Benches that are closed, however a test ends."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.tools.git.ground import Bench


@pytest.fixture
def opened(home: Path) -> Generator[Callable[[Path], Bench]]:
    """Make a bench of this folder."""
    benches: list[Bench] = []

    def made(root: Path) -> Bench:
        benches.append(Bench(root, home))
        return benches[-1]

    yield made
    for bench in benches:
        bench.close()
