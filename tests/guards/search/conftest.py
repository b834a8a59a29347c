"""A small workspace, and both engines that search it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_server.guards.search.search import FileSearch
from mcp_server.model.files import Search
from tests.guards.search.ground import finder


@pytest.fixture(scope="session")
def ripgrep_works(tmp_path_factory: pytest.TempPathFactory) -> bool:
    root = tmp_path_factory.mktemp("probe")
    return finder(root, "ripgrep").grep(Search("x")).engine == "ripgrep"


@pytest.fixture(params=["python", "ripgrep"])
def engine(request: pytest.FixtureRequest, ripgrep_works: bool) -> str:
    if request.param == "ripgrep" and not ripgrep_works:
        pytest.skip("ripgrep is missing, or this kernel has no Landlock to shut it in")
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def find(root: Path, engine: str) -> FileSearch:
    return finder(root, engine)


@pytest.fixture
def plant(root: Path) -> Callable[[dict[str, str | bytes]], None]:
    def plant(files: dict[str, str | bytes]) -> None:
        for path, content in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    return plant
