"""Does a call that nobody would make get an answer in words, and not a failure of ours?"""

from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe, pipe

LARGE = (2**63, -(2**63), 10**30, 1e308)
CALLS = [
    pytest.param("swe", "grep", {"pattern": "a\0b"}, id="grep, NUL"),
    pytest.param("swe", "glob", {"pattern": "a\0*"}, id="glob, NUL"),
    *(pytest.param("swe", "TodoRead", {"offset": one}, id=f"TodoRead, {one}") for one in LARGE),
    *(pytest.param("data", "fs_read_file", {"path": "notes.md", "offset": one}, id=f"fs, {one}") for one in LARGE),
]


def said(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("odd")
    for name in ("work", "home"):
        (folder / name).mkdir()
    (folder / "work" / "notes.md").write_text("one\n")
    with pipe(folder / "work", folder / "home") as one:
        one.hello("opencode")
        yield one


@pytest.mark.parametrize(("mode", "tool", "arguments"), CALLS)
def test_what_no_tool_can_take_is_refused_in_words(
    client: Pipe, mode: str, tool: str, arguments: dict[str, Any]
) -> None:
    client.call("menu_enter", mode=mode)
    assert said(client.call(tool, **arguments)).startswith("Error INVALID_ARGUMENTS: "), tool


def test_the_largest_number_is_taken(client: Pipe) -> None:
    client.call("menu_enter", mode="data")
    answer = client.call("fs_read_file", path="notes.md", offset=2**63 - 1)
    assert "INTERNAL" not in said(answer)


def test_a_workspace_that_was_moved_is_named(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("opencode")
        away = workspace.rename(workspace.with_name("elsewhere"))
        answer = one.call("Read", file_path="notes.md")
        assert said(answer).startswith(f"Error STORE_UNAVAILABLE: {workspace}"), answer
        away.rename(workspace)
        assert not one.call("glob", pattern="*")["isError"]
