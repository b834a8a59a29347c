"""Who hears that a list changed, what is held back until it was fetched, and what runs in between?"""

import time
from collections.abc import Generator
from pathlib import Path

import pytest

from mcp_server.model.menus import META_TOOLS
from mcp_server.model.posture import Profile
from tests.clients.clients import MODERN, held, over_sse
from tests.clients.person import choose
from tests.clients.pipe import pipe
from tests.clients.raw import raw
from tests.clients.served import Served, served
from tests.clients.shipped import READING, SWE
from tests.clients.tuned import tuned
from tests.clients.waiting import wait_until

CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
FOR_EVER = 60
"""Seconds of patience that no test would live to see the end of."""

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changes")
    for name in ("work", "home"):
        (folder / name).mkdir()
    (folder / "work" / "notes.md").write_text("first\n")
    return folder


@pytest.fixture(scope="module")
def here(place: Path) -> Generator[Served]:
    """Served over HTTP, with all the patience in the world: what is answered was not held back, or was fetched."""
    with served(place / "work", place / "home", run=tuned(settle=FOR_EVER)) as one:
        yield one


def enter(mode: str) -> dict[str, object]:
    return {"name": "menu_enter", "arguments": {"mode": mode}}


LISTEN: dict[str, object] = {"notifications": {"toolsListChanged": True}}


# Over a pipe.


def test_the_notice_comes_first_then_the_new_list_then_the_answer(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one, pipe(workspace, home) as other:
        one.hello()
        other.hello()
        entering = one.send("tools/call", enter("swe"))
        assert one.message()["method"] == CHANGED
        listing = one.send("tools/list")
        assert [one.message()["id"], one.message()["id"]] == [listing, entering]
        # Another process of the same person, on the same folder, hears nothing.
        assert other.until(other.send("tools/list"))[1] == []


def test_a_listener_of_the_process_hears_of_it_and_the_answer_waits_for_its_list(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello(era=MODERN)
        listening = one.send("subscriptions/listen", LISTEN)
        assert one.message()["method"] == ACKNOWLEDGED
        entering = one.send("tools/call", enter("swe"))
        told = one.message()
        assert told["method"] == CHANGED
        assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening
        listing = one.send("tools/list")
        assert [one.message()["id"], one.message()["id"]] == [listing, entering]


def test_two_moves_at_once_are_both_answered_after_one_look(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello()
        moves = {one.send("tools/call", enter("swe")), one.send("tools/call", enter("data"))}
        assert [one.message()["method"], one.message()["method"]] == [CHANGED, CHANGED]
        listing = one.send("tools/list")
        assert one.message()["id"] == listing
        assert {one.message()["id"], one.message()["id"]} == moves


def test_a_client_that_lists_again_is_waited_for_again_though_nobody_knows_it(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello("somebody")
        for mode in ("swe", "data"):
            entering = one.send("tools/call", enter(mode))
            assert one.message()["method"] == CHANGED
            listing = one.send("tools/list")
            assert [one.message()["id"], one.message()["id"]] == [listing, entering]


@pytest.mark.heavy
def test_a_client_that_does_not_is_waited_for_once(workspace: Path, home: Path) -> None:
    patience = 1.0
    with pipe(workspace, home, run=tuned(settle=patience)) as one:
        one.hello("somebody")
        took: list[float] = []
        for mode in ("swe", "data"):
            began = time.monotonic()
            _, before = one.until(one.send("tools/call", enter(mode)))
            took.append(time.monotonic() - began)
            assert [message["method"] for message in before] == [CHANGED]
        assert took[0] >= patience > took[1]


@pytest.mark.parametrize("client", ["copilot-cli-x", "codex-mcp-client", "qwen-code-mcp-client-x"])
def test_a_host_known_not_to_list_again_is_never_waited_for(workspace: Path, home: Path, client: str) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello(client)
        for mode in ("swe", "data"):
            answer, before = one.until(one.send("tools/call", enter(mode)))
            assert [message["method"] for message in before] == [CHANGED]
            assert answer["result"]["isError"] is False


def test_what_a_client_learned_to_do_is_known_of_the_next_of_its_name(here: Served) -> None:
    with raw(here, name="learner") as one:
        entering, stream = one.send("tools/call", enter("swe"))
        assert stream.message()["method"] == CHANGED
        one.names()
        stream.until(entering)
    with raw(here, name="learner") as again:
        entering, stream = again.send("tools/call", enter("swe"))
        assert stream.message()["method"] == CHANGED
        assert stream.quiet()
        again.names()
        stream.until(entering)


@pytest.mark.parametrize(
    ("flags", "client"),
    [(("--listing", "stable"), "opencode"), (("--listing", "flat"), "opencode"), (("--mode", "swe"), "opencode")],
)
def test_a_list_that_no_mode_changes_is_never_announced(
    workspace: Path, home: Path, flags: tuple[str, ...], client: str
) -> None:
    with pipe(workspace, home, *flags, run=tuned(settle=FOR_EVER)) as one:
        one.hello(client)
        before = one.names()
        for tool, arguments in [("menu_enter", {"mode": "swe"}), ("menu_exit", {}), ("menu_enter", {"mode": "data"})]:
            _, told = one.until(one.send("tools/call", {"name": tool, "arguments": arguments}))
            assert told == []
        assert one.names() == before


def test_a_flat_list_stays_flat_and_open_after_entering_a_mode(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--listing", "flat") as one:
        one.hello()
        before = one.names()
        assert not one.call("menu_enter", mode="swe")["isError"]
        assert one.names() == before
        assert not one.call("fs_file_info", path="notes.md")["isError"]


def test_going_where_one_is_already_says_nothing(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="swe")
        read = {"tool": "Read", "arguments": {"file_path": "notes.md"}}
        for again in (
            enter("swe"),
            enter("Software Engineering"),
            {"name": "menu_read", "arguments": read | {"mode": "swe"}},
            {"name": "menu_read", "arguments": read | {"mode": "1"}},
        ):
            answer, told = one.until(one.send("tools/call", again))
            assert answer["result"]["isError"] is False
            assert told == []


def test_a_carrier_that_enters_a_mode_says_so_before_it_answers(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello("codex-mcp-client")
        read = {"tool": "Read", "arguments": {"file_path": "notes.md"}, "mode": "swe"}
        answer, told = one.until(one.send("tools/call", {"name": "menu_read", "arguments": read}))
        assert [message["method"] for message in told] == [CHANGED]
        assert "first" in answer["result"]["content"][0]["text"]


def test_a_call_that_ends_after_a_move_neither_announces_it_again_nor_waits(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="lab")
        slow = one.send("tools/call", {"name": "lab_wait", "arguments": {"folder": str(workspace)}})
        _appears(workspace / "running")
        _, told = one.until(one.send("tools/call", {"name": "menu_exit", "arguments": {}}))
        assert [message["method"] for message in told] == [CHANGED]
        (workspace / "end").write_text("")
        answer, told = one.until(slow)
        assert answer["result"]["content"][0]["text"] == "Waited."
        assert told == []


def test_taking_back_a_move_that_waits_for_a_look_leaves_the_session_where_it_went(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned(settle=FOR_EVER)) as one:
        one.hello()
        entering = one.send("tools/call", enter("swe"))
        assert one.message()["method"] == CHANGED
        one.raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % entering)
        assert one.names() == [*META_TOOLS, *SWE]
        assert not one.call("Read", file_path="notes.md")["isError"]


def _appears(path: Path) -> None:
    wait_until(path.exists, f"{path} never came")


# Over HTTP.


def test_without_a_stream_of_its_own_the_notice_rides_on_the_answer(here: Served) -> None:
    with raw(here) as one, raw(here) as other:
        hearing = other.listening()
        entering, stream = one.send("tools/call", enter("swe"))
        assert stream.message()["method"] == CHANGED
        assert stream.quiet(), "the answer came before the list was fetched"
        assert one.names() == [*META_TOOLS, *SWE]
        answer, told = stream.until(entering)
        assert answer["result"]["isError"] is False
        assert told == []
        assert other.names() == list(META_TOOLS)
        assert hearing.quiet()


def test_with_a_stream_of_its_own_a_client_hears_it_there_before_the_answer(here: Served) -> None:
    with raw(here) as one:
        hearing = one.listening()
        entering, stream = one.send("tools/call", enter("data"))
        assert hearing.message()["method"] == CHANGED
        assert stream.message()["method"] == CHANGED
        assert stream.quiet()
        one.names()
        assert stream.until(entering)[1] == []
        assert hearing.quiet()


@pytest.mark.parametrize("again", [enter("swe"), {"name": "menu_list", "arguments": {}}])
def test_over_http_too_nothing_is_said_where_nothing_changed(here: Served, again: dict[str, object]) -> None:
    with raw(here, name="codex-mcp-client") as one:
        hearing = one.listening()
        one.call("menu_enter", mode="swe")
        assert hearing.message()["method"] == CHANGED
        number, stream = one.send("tools/call", again)
        assert stream.until(number)[1] == []
        assert hearing.quiet()


async def test_over_sse_the_one_stream_carries_it_once(here: Served) -> None:
    async with (
        held(over_sse(here), "legacy", "codex-mcp-client") as one,
        held(over_sse(here), "legacy", "codex-mcp-client") as other,
    ):
        await one.call("menu_enter", mode="swe")
        await one.call("menu_enter", mode="swe")
        await other.names()
        assert one.told == [CHANGED]
        assert other.told == []


async def test_over_modern_http_a_move_changes_no_list_and_a_posture_does(here: Served, place: Path) -> None:
    with (
        raw(here, era=MODERN) as root,
        raw(here, era=MODERN, path="/swe") as pinned,
        raw(here, era=MODERN, path="/data") as elsewhere,
    ):
        hearing = {one: one.send("subscriptions/listen", LISTEN)[1] for one in (root, pinned, elsewhere)}
        for stream in hearing.values():
            assert stream.message()["method"] == ACKNOWLEDGED
        assert not root.call("menu_enter", mode="swe")["isError"]
        assert pinned.names()[-len(SWE) :] == SWE
        assert all(stream.quiet(0.05) for stream in hearing.values())
        await choose(place / "work", place / "home", profile=Profile.RESTRICTED)
        try:
            assert hearing[pinned].message()["method"] == CHANGED
            assert hearing[elsewhere].message()["method"] == CHANGED
            assert pinned.names()[-len(READING) :] == READING
            # Whoever looks at the list of ROOT, which the profile leaves as it is, hears nothing.
            assert hearing[root].quiet()
        finally:
            await choose(place / "work", place / "home", profile=Profile.NORMAL)


async def test_a_posture_is_announced_to_those_whose_list_it_changes(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as inside, pipe(workspace, home) as outside:
        for one in (inside, outside):
            one.hello("codex-mcp-client")
            one.names()
        inside.call("menu_enter", mode="swe")
        await choose(workspace, home, profile=Profile.RESTRICTED)
        assert inside.message()["method"] == CHANGED
        assert inside.names()[-len(READING) :] == READING
        assert outside.until(outside.send("tools/list"))[1] == []
        assert inside.call("Write", file_path="planted.txt", content="x")["isError"]
        assert not (workspace / "planted.txt").exists()


async def test_a_posture_that_changes_no_list_is_announced_to_nobody(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="swe")
        one.names()
        await choose(workspace, home, reasoning=False, model_mode="deep")
        await choose(workspace, home, profile=Profile.RESTRICTED)
        assert one.message()["method"] == CHANGED
        assert one.until(one.send("tools/list"))[1] == []


# What is hidden does not run, on the way in or in between.


def test_whoever_moves_a_session_by_its_handle_moves_everybody_in_it(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one, pipe(workspace, home) as other:
        one.hello("codex-mcp-client")
        other.hello("codex-mcp-client")
        handle = one.call("menu_enter", mode="data")["structuredContent"]["menu"]
        assert "fs_write_file" in one.names()
        assert not other.call("menu_exit", menu=handle)["isError"]
        # The one whose session it is hears of it although another process did it, and what it still shows is refused.
        assert one.message()["method"] == CHANGED
        refused = one.call("fs_write_file", path="planted.txt", content="x")
        assert refused["isError"]
        assert '"mode": "data"' in refused["content"][0]["text"]
        assert not (workspace / "planted.txt").exists()
