"""Is what the person types at a terminal in force, and told, in every server of the workspace within half a second?"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients import warm
from tests.clients.clients import MODERN
from tests.clients.person import typed
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import PATIENCE, command, environment, served
from tests.clients.tuned import tuned
from tests.clients.waiting import wait_until

CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LISTEN: dict[str, Any] = {"notifications": {"toolsListChanged": True}}
READING = ["Read", "grep", "glob"]
SWE = ["Read", "Edit", "Write", "grep", "glob"]
WITHIN = 0.5


def from_a_shell(workspace: Path, home: Path, *words: str) -> None:
    line = command(*words, "--workspace", str(workspace))
    warm.run(line, environment(home), timeout=PATIENCE, check=True)


def heard_within(wait: Callable[[], dict[str, Any]], since: float) -> None:
    assert wait()["method"] == CHANGED
    assert time.monotonic() - since < WITHIN


def tools_of(one: Any) -> list[str]:
    return [name for name in one.names() if name in SWE]


@pytest.mark.heavy
def test_every_server_hears_of_it_and_holds_it_within_half_a_second(workspace: Path, home: Path) -> None:
    """Three processes on one folder: two over stdio, one in each era, and one over HTTP with clients of both."""
    with (
        pipe(workspace, home) as old,
        pipe(workspace, home) as new,
        served(workspace, home) as here,
        raw(here) as streaming,
        raw(here, era=MODERN, path="/swe") as listening,
    ):
        old.hello("opencode")
        new.hello("opencode", era=MODERN)
        for one in (old, new, streaming):
            one.call("menu_enter", mode="swe")
            assert tools_of(one) == SWE
        assert tools_of(listening) == SWE
        new.send("subscriptions/listen", LISTEN)
        assert new.message()["method"] == ACKNOWLEDGED
        streams = [streaming.listening(), listening.send("subscriptions/listen", LISTEN)[1]]
        assert streams[1].message()["method"] == ACKNOWLEDGED
        for profile, tools in (("restricted", READING), ("normal", SWE)):
            from_a_shell(workspace, home, "profile", profile)
            since = time.monotonic()
            for wait in (old.message, new.message, streams[0].message, streams[1].message):
                heard_within(wait, since)
            for one in (old, new, streaming, listening):
                assert tools_of(one) == tools
                wrote = one.call("Write", file_path=f"{profile}.txt", content="x")
                assert wrote["isError"] is (profile == "restricted"), wrote
                if wrote["isError"]:
                    assert "`menugate profile normal` at a terminal" in wrote["content"][0]["text"]
                else:
                    (workspace / f"{profile}.txt").unlink()
        assert not (workspace / "restricted.txt").exists()


def test_a_call_that_runs_is_left_alone_and_the_next_is_judged_anew(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, run=tuned()) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="lab")
        slow = one.send("tools/call", {"name": "lab_wait", "arguments": {"folder": str(workspace)}})
        appears(workspace / "running")
        said = json.loads(typed(workspace, home, "steer", "mode", "review", "after-current-tool", "--json"))
        assert said["in_force"] is False
        wrote = menu_call(one, "fs_write_file", path="during.txt", content="x")
        assert not wrote["isError"], "the change waits for the call"
        (workspace / "end").write_text("")
        assert one.until(slow)[0]["result"]["content"][0]["text"] == "Waited."
        refused = menu_call(one, "fs_write_file", path="after.txt", content="x")
        assert "READ_ONLY_WORK" in refused["content"][0]["text"]
        assert not (workspace / "after.txt").exists()


@pytest.mark.parametrize("end", ["a change", "complete"])
def test_for_the_next_unit_a_tool_appears_at_once_and_is_gone_after_it(workspace: Path, home: Path, end: str) -> None:
    """In the middle of a run: what was read so far is for the change to come."""
    with pipe(workspace, home) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="data")
        one.call("fs_write_file", path="before.txt", content="x")
        one.call("fs_read_file", path="before.txt")
        assert "fs_delete" not in one.names()
        typed(workspace, home, "steer", "profile", "trusted", "for-next-unit")
        heard(one)
        one.call("fs_read_file", path="before.txt")
        assert "fs_delete" in one.names()
        if end == "complete":
            one.call("complete", final_answer="done")
        else:
            one.call("fs_write_file", path="after.txt", content="x")
        heard(one)
        assert "fs_delete" not in one.names()
    assert "default" in typed(workspace, home, "profile")


def test_it_survives_the_servers_end_and_comes_at_the_next_milestone(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="swe")
        typed(workspace, home, "mode", "review", "--scope", "next-milestone")
        one.process.kill()
    with pipe(workspace, home) as again:
        again.hello("codex-mcp-client")
        again.call("menu_enter", mode="swe")
        assert not again.call("Write", file_path="before.txt", content="x")["isError"]
        again.call("complete", final_answer="done")
        refused = again.call("Write", file_path="after.txt", content="x")
        assert "READ_ONLY_WORK" in refused["content"][0]["text"]
    assert not (workspace / "after.txt").exists()


def test_nothing_at_the_terminal_goes_beyond_the_ceiling(workspace: Path, home: Path) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text("max_profile: normal\n")
    said = typed(workspace, home, "profile", "trusted", code=1)
    assert "above the ceiling `normal`" in said
    assert f"`max_profile` in {folder / 'menugate.yaml'}" in said
    assert not (workspace / ".menugate" / "state.db").exists() or "normal" in typed(workspace, home, "profile")


def test_one_may_choose_for_somebody_with_a_token_and_for_nobody_else(workspace: Path, home: Path) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    token = {"principal": "alice", "sha256": "0" * 64, "max_profile": "normal"}
    (folder / "menugate.yaml").write_text(json.dumps({"tokens": [token]}))
    assert "in force" in typed(workspace, home, "profile", "restricted", "--for", "alice")
    assert "restricted" in typed(workspace, home, "profile", "--for", "alice")
    assert "normal" in typed(workspace, home, "profile")
    assert "the token of alice" in typed(workspace, home, "profile", "trusted", "--for", "alice", code=1)
    assert "Did you mean `alice`?" in typed(workspace, home, "profile", "restricted", "--for", "alcie", code=1)


def menu_call(one: Pipe, tool: str, **arguments: Any) -> dict[str, Any]:
    return one.call("menu_call", tool=tool, arguments=arguments, mode="data")


def heard(one: Pipe) -> None:
    """Wait until the server said that its list changed; it says so of its own accord."""
    while one.message().get("method") != CHANGED:
        pass


def appears(path: Path) -> None:
    wait_until(path.exists, f"{path} never came")


@pytest.mark.parametrize("era", ["legacy", MODERN])
def test_what_the_person_allows_is_allowed_from_the_next_call_on(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home) as one:
        one.hello("opencode", era=era)
        one.call("menu_enter", mode="swe")
        for number in range(8):
            from_a_shell(workspace, home, "mode", "plan")
            assert one.call("Write", file_path=f"{number}.txt", content="x")["isError"]
            from_a_shell(workspace, home, "mode", "build")
            answer = one.call("Write", file_path=f"{number}.txt", content="x")
            assert not answer["isError"], answer["content"]
