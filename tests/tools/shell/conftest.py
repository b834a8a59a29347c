"""One server for all the tests of a file, at the profile at which nobody is asked."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe
from tests.tools.shell.house import served


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("shell")
    for name in ("work", "home"):
        (root / name).mkdir()
    (root / "work" / "deep").mkdir()
    (root / "work" / "a.txt").write_text("one\ntwo\n")
    return root / "work", root / "home"


@pytest.fixture(scope="module")
def at(folders: tuple[Path, Path]) -> Generator[Pipe, None, None]:
    """At the profile trusted, where nobody is asked."""
    with served(*folders, "--profile", "trusted") as client:
        yield client
