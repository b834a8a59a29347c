"""Which list does a client see, and when is it told that it changed? Real clients, both eras, every transport."""

from pathlib import Path

import pytest

from mcp_server.model.menu import CARRIERS, META_TOOLS
from tests.doors.clients import ERAS, MODERN, held, over_http, over_sse, over_stdio, structured, text
from tests.doors.pipe import pipe
from tests.doors.served import served

SIX = list(META_TOOLS)
EIGHT = [*META_TOOLS, *CARRIERS]
SWE = ["Read", "Edit", "Write", "grep", "glob"]
CHANGED = "notifications/tools/list_changed"

pytestmark = pytest.mark.anyio


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


async def test_http_in_the_legacy_era_shows_each_session_its_own_list(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here:
        async with held(over_http(here), "legacy") as one, held(over_http(here), "legacy", "mcp") as other:
            await one.call("menu_enter", mode="data")
            assert (await one.names())[:7] == [*SIX, "fs_read_file"]
            assert await other.names() == EIGHT
            assert CHANGED in one.told
            assert other.told == []


async def test_sse_shows_the_mode_and_says_so(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here:
        async with held(over_sse(here), "legacy") as one:
            assert await one.names() == SIX
            await one.call("menu_enter", mode="swe")
            assert await one.names() == [*SIX, *SWE]
            assert CHANGED in one.told


async def test_http_in_the_modern_era_never_changes_its_list(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here:
        async with held(over_http(here), MODERN) as one:
            assert await one.names() == EIGHT
            entered = await one.call("menu_enter", mode="swe")
            assert await one.names() == EIGHT
            read = await one.call(
                "menu_read", tool="Read", arguments={"file_path": "notes.md"}, menu=structured(entered)["menu"]
            )
            assert "first" in text(read)


@pytest.mark.parametrize("era", ERAS)
async def test_a_hidden_tool_is_refused_and_runs_nothing(workspace: Path, home: Path, era: str) -> None:
    async with held(over_stdio(workspace, home), era) as one:
        refused = await one.call("fs_write_file", path="planted.txt", content="x")
        assert refused.is_error
        assert text(refused).startswith("Error WRONG_MODE")
        assert "menu_enter" in text(refused)
        assert "data" in text(refused)
        assert not (workspace / "planted.txt").exists()


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


def test_the_notice_comes_before_the_answer_and_the_answer_after_the_new_list(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("opencode")
        entering = one.send("tools/call", {"name": "menu_enter", "arguments": {"mode": "swe"}})
        assert one.message()["method"] == CHANGED
        listing = one.send("tools/list")
        assert one.message()["id"] == listing
        assert one.message()["id"] == entering


def test_a_client_that_does_not_list_again_is_waited_for_once(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("somebody")
        for mode in ("swe", "data"):
            # The answer comes although the list is not fetched; after the first time, nobody waits for it.
            entering = one.send("tools/call", {"name": "menu_enter", "arguments": {"mode": mode}})
            answer, before = one.until(entering)
            assert [message["method"] for message in before] == [CHANGED]
            assert answer["result"]["isError"] is False


def test_a_pinned_endpoint_shows_one_mode_and_never_leaves_it(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("mcp")
        assert one.names() == [*SIX, *SWE]
        assert one.call("menu_enter", mode="data")["isError"]
        assert one.call("menu_exit")["isError"]
        assert one.call("fs_file_info", path="notes.md")["isError"]
        assert not one.call("Read", file_path="notes.md")["isError"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_mode_has_an_address_of_its_own(workspace: Path, home: Path, era: str) -> None:
    with served(workspace, home) as here:
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
