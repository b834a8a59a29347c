"""Benches that are closed, however a test ends."""

from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from mcp_server.model.processes import Processes
from tests.tools.git.bare import Bare
from tests.tools.git.ground import GitWorkbench, Opened
from tests.tools.git.poison import template


@pytest.fixture
def opened(home: Path) -> Generator[Opened]:
    """Make a bench of this folder."""
    benches: list[GitWorkbench] = []

    def made(root: Path) -> GitWorkbench:
        benches.append(GitWorkbench(root, home))
        return benches[-1]

    yield made
    for bench in benches:
        bench.close()


@pytest.fixture
def bench(tmp_path: Path, opened: Opened) -> GitWorkbench:
    """A repository with some history, where git runs without a sandbox."""
    root = tmp_path / "work"
    template(root)
    bench = opened(root)
    bench.bare = cast(Processes, Bare(root))
    return bench
