"""Which list does a client see, and when is it told that it changed? Real clients, both eras, every transport."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.menus import CARRIERS, META_TOOLS
from tests.clients.clients import ERAS, MODERN, held, over_http, over_sse, over_stdio, structured, text
from tests.clients.pipe import pipe
from tests.clients.served import Served, served
from tests.clients.shipped import SWE

SIX = list(META_TOOLS)
EIGHT = [*META_TOOLS, *CARRIERS]
CHANGED = "notifications/tools/list_changed"

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists")
    (folder / "work" / "src").mkdir(parents=True)
    (folder / "work" / "notes.md").write_text("# Notes\n\nfirst\n")
    (folder / "home").mkdir()
    return folder


@pytest.fixture(scope="module")
def here(ground: Path) -> Generator[Served]:
    with served(ground / "work", ground / "home") as one:
        yield one


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("client", "root"), [("opencode", SIX), ("gemini-cli-mcp-client", SIX), ("mcp", EIGHT), ("somebody", EIGHT)]
)
async def test_stdio_shows_the_list_of_this_client(
    workspace: Path, home: Path, era: str, client: str, root: list[str]
) -> None:
    async with held(over_stdio(workspace, home), era, client) as one:
        assert await one.names() == root
        await one.call("menu_enter", mode="swe")
        assert await one.names() == [*root, *SWE]
        await one.call("menu_exit")
        assert await one.names() == root
        assert "ALREADY_AT_ROOT" in text(await one.call("menu_exit"))


async def test_http_in_the_legacy_era_shows_each_session_its_own_list(here: Served) -> None:
    async with held(over_http(here), "legacy") as one, held(over_http(here), "legacy", "mcp") as other:
        await one.call("menu_enter", mode="data")
        assert (await one.names())[:7] == [*SIX, "fs_read_file"]
        assert await other.names() == EIGHT
        assert CHANGED in one.told
        assert other.told == []


async def test_sse_shows_the_mode_and_says_so(here: Served) -> None:
    async with held(over_sse(here), "legacy") as one:
        assert await one.names() == SIX
        await one.call("menu_enter", mode="swe")
        assert await one.names() == [*SIX, *SWE]
        assert CHANGED in one.told


async def test_http_in_the_modern_era_never_changes_its_list(here: Served) -> None:
    async with held(over_http(here), MODERN) as one:
        assert await one.names() == EIGHT
        entered = await one.call("menu_enter", mode="swe")
        assert await one.names() == EIGHT
        read = await one.call(
            "menu_read", tool="Read", arguments={"file_path": "notes.md"}, menu=structured(entered)["menu"]
        )
        assert "first" in text(read)


WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}", "sse legacy"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_hidden_tool_is_refused_and_runs_nothing(ground: Path, here: Served, way: str) -> None:
    transport, era = way.split(" ")
    work = ground / "work"
    target = {
        "stdio": lambda: over_stdio(work, ground / "home"),
        "http": lambda: over_http(here),
        "sse": lambda: over_sse(here),
    }[transport]()
    write = {"path": "planted.txt", "content": "x"}
    async with held(target, era) as one:

        async def refused(tool: str, /, **arguments: Any) -> None:
            result = await one.call(tool, **arguments)
            assert result.is_error
            assert text(result).startswith("Error WRONG_MODE")
            # Whose list stays as it is would go round in a circle there.
            fixed = transport == "http" and era == MODERN
            assert ('"mode": "data"' if fixed else "`menu_enter`") in text(result)
            assert "`data`" in text(result)
            assert not (work / "planted.txt").exists()

        carried = {"tool": "fs_write_file", "arguments": write}
        await refused("fs_write_file", **write)
        await refused("menu_call", **carried)
        menu = structured(await one.call("menu_enter", mode="swe"))["menu"]
        await refused("fs_write_file", **write)
        await refused("menu_call", **carried, menu=menu)
        # It was on the list a moment ago, and whoever calls it has not looked since.
        await one.call("menu_enter", mode="data", menu=menu)
        assert not (await one.call("menu_read", tool="fs_file_info", arguments={"path": "src"}, menu=menu)).is_error
        await one.call("menu_exit", menu=menu)
        await refused("menu_call", **carried, menu=menu)
        await refused("fs_write_file", **write)


def test_the_stable_list_is_the_same_bytes_for_ever(workspace: Path, home: Path) -> None:
    with (
        pipe(workspace, home, "--listing", "stable") as one,
        pipe(workspace, home, "--listing", "stable") as other,
    ):
        one.hello("opencode")
        other.hello("somebody")
        first = tools_bytes(one.list_line())
        for _ in range(100):
            one.call("menu_enter", mode="swe")
            assert tools_bytes(one.list_line()) == first
            one.call("menu_exit")
            assert tools_bytes(one.list_line()) == first
        assert tools_bytes(other.list_line()) == first
    with pipe(workspace, home, "--listing", "stable") as again:
        again.hello("opencode")
        assert tools_bytes(again.list_line()) == first


def tools_bytes(line: bytes) -> bytes:
    """The answer without its id, which is the client's."""
    return line.partition(b'"result":')[2]


def test_a_pinned_endpoint_shows_one_mode_and_never_leaves_it(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("mcp")
        assert one.names() == [*SIX, *SWE]
        assert one.call("menu_enter", mode="data")["isError"]
        assert one.call("menu_exit")["isError"]
        assert one.call("fs_file_info", path="notes.md")["isError"]
        assert not one.call("Read", file_path="notes.md")["isError"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_mode_has_an_address_of_its_own(here: Served, era: str) -> None:
    async with held(over_http(here, "/swe"), era) as one:
        assert await one.names() == [*SIX, *SWE]
        assert not (await one.call("Read", file_path="notes.md")).is_error
        assert (await one.call("fs_file_info", path="notes.md")).is_error


def test_a_flat_list_shows_everything_and_everything_on_it_runs(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--listing", "flat") as one:
        one.hello("somebody")
        names = one.names()
        assert names[:6] == SIX
        assert set(SWE) < set(names)
        assert not one.call("Read", file_path="notes.md")["isError"]
        assert not one.call("fs_file_info", path="notes.md")["isError"]
        one.call("menu_enter", mode="swe")
        assert one.names() == names
        assert not one.call("fs_file_info", path="notes.md")["isError"], "and so it stays after a move"
        one.call("menu_exit")
        assert not one.call("Read", file_path="notes.md")["isError"]
