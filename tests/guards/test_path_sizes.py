"""How much does a question count before the person has waited long enough?"""

import os
from pathlib import Path

import pytest

from mcp_server.guards import path_sizes
from mcp_server.guards.jail import Jail
from mcp_server.guards.path_sizes import measure_path


def test_a_large_folder_is_not_counted_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_sizes, "MAX_ENTRIES", 20)
    for number in range(30):
        (tmp_path / "many" / str(number)).mkdir(parents=True)
        (tmp_path / "many" / str(number) / "file").touch()
    found = measure_path(Jail(tmp_path), "many", follow=False)
    assert found is not None
    assert not found.whole
    assert found.files < 30


def test_links_are_counted_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    for number in range(5):
        (tmp_path / "outside" / str(number)).touch()
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    (work / "folder" / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(work / "pipe")
    jail = Jail(work)
    found = measure_path(jail, "folder", follow=False)
    assert found is not None and (found.files, found.whole) == (1, True)
    assert measure_path(jail, "folder/link/1", follow=False) is None
    pipe = measure_path(jail, "pipe", follow=False)
    assert pipe is not None and pipe.kind == "FIFO"


def test_the_workspace_itself_is_not_measured(tmp_path: Path) -> None:
    assert measure_path(Jail(tmp_path), ".", follow=False) is None
