"""Each sandbox in turn; the one that is not installed is skipped, and says so."""

from pathlib import Path

import pytest

from mcp_server.guards.sandbox.launch import Sandbox
from tests.guards.processes.ground import SANDBOXES, furnish, sandbox


@pytest.fixture(params=SANDBOXES)
def box(request: pytest.FixtureRequest) -> Sandbox:
    found = sandbox(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed; bin/setup installs it where it may")
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return furnish(tmp_path)
