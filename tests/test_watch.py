"""Is a change in a folder heard of, and is it said where none can be?"""

import asyncio
import sys
from pathlib import Path

import pytest

from mcp_server.watch import FileWatch
from tests.clients.served import PATIENCE

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="changes are told by inotify, which only Linux has"),
]


class Heard:
    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.watch = FileWatch(self.event.set)

    async def wait(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.event.wait()
        self.event.clear()


async def test_a_file_that_is_written_made_moved_or_removed_is_heard_of(tmp_path: Path) -> None:
    heard, path = Heard(), tmp_path / "menugate.yaml"
    assert heard.watch.watch_paths([str(path)])
    path.write_text("x")
    await heard.wait()
    path.write_text("y")
    await heard.wait()
    path.rename(tmp_path / "other")
    await heard.wait()
    (tmp_path / "other").unlink()
    await heard.wait()
    heard.watch.stop_watching()


async def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    heard, path = Heard(), tmp_path / "deep" / "er" / "menugate.yaml"
    assert heard.watch.watch_paths([str(path)])
    (tmp_path / "deep").mkdir()
    await heard.wait()
    heard.watch.stop_watching()
    heard.watch.stop_watching()


async def test_what_lies_behind_a_link_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert not Heard().watch.watch_paths([str(tmp_path / "link" / "menugate.yaml")])
