"""A workspace with the real guards, and a file beside it that nobody may reach."""

from pathlib import Path

import pytest

from tests.tools.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    (tmp_path / "outside.txt").write_text("OUTSIDE")
    root = tmp_path / "work"
    root.mkdir()
    return Workbench(root)
