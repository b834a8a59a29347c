"""Benches that are closed, however a test ends."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.tools.git.ground import GitWorkbench


@pytest.fixture
def opened(home: Path) -> Generator[Callable[[Path], GitWorkbench]]:
    """Make a bench of this folder."""
    benches: list[GitWorkbench] = []

    def made(root: Path) -> GitWorkbench:
        benches.append(GitWorkbench(root, home))
        return benches[-1]

    yield made
    for bench in benches:
        bench.close()
