"""What does a client see of a tool that misbehaves? A refusal it can read, nothing of our insides, a live server."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import served
from tests.wire.faulty import CANARY, HALVES, LONG, MODE, RAISED, RETURNED

RUN = [sys.executable, "-m", "tests.wire.faulty"]
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""A method and its params; the message that answers them."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("faulty")
    for name in ("work", "home"):
        (folder / name).mkdir()
    return folder / "work", folder / "home"


@pytest.fixture(scope="module", params=[f"{door} {era}" for door in ("stdio", "http") for era in ERAS])
def ask(request: pytest.FixtureRequest, place: tuple[Path, Path]) -> Iterator[Ask]:
    door, era = request.param.split()
    with ExitStack() as stack:
        if door == "stdio":
            line: Pipe = stack.enter_context(pipe(*place, "--mode", MODE, run=RUN))
            line.hello("somebody", era)
            yield line.request
        else:
            speaker = Speaker(stack.enter_context(served(*place, "--mode", MODE, run=RUN)), era).hello()
            yield lambda method, params: speaker.ask(method, params).message


def call(ask: Ask, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = ask("tools/call", {"name": tool, "arguments": arguments})
    assert CANARY not in json.dumps(answer)
    return answer["result"]


@pytest.mark.parametrize("kind", RAISED)
def test_what_a_tool_raises_stays_with_us(ask: Ask, kind: str) -> None:
    result = call(ask, "raise_it", kind=kind)
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert text.startswith("Error INTERNAL: `raise_it` failed inside menugate"), text
    assert call(ask, "think", content="still there?")["isError"] is False


def test_what_a_tool_raises_is_in_the_log(place: tuple[Path, Path]) -> None:
    with pipe(*place, "--mode", MODE, run=RUN) as line:
        line.hello("somebody")
        call(line.request, "raise_it", kind="group")
        line.process.terminate()
        assert line.process.stderr is not None
        said = line.process.stderr.read().decode()
    assert CANARY in said
    assert "the tool raise_it failed" in said


def test_a_log_that_nobody_reads_holds_nobody_up(place: tuple[Path, Path]) -> None:
    with pipe(*place, "--mode", MODE, run=RUN) as line:
        line.hello("somebody")
        for _ in range(80):
            call(line.request, "raise_it", kind="group")
        assert line.bye() == 0


@pytest.mark.parametrize("kind", RETURNED)
def test_what_is_no_result_is_not_shown(ask: Ask, kind: str) -> None:
    result = call(ask, "return_it", kind=kind)
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Error INTERNAL: `return_it`"), result
    assert call(ask, "think", content="still there?")["isError"] is False


@pytest.mark.parametrize("kind", HALVES)
def test_half_a_character_is_shown_as_a_sign(ask: Ask, kind: str) -> None:
    result = call(ask, "return_it", kind=kind)
    assert result["isError"] is isinstance(HALVES[kind], type(HALVES["half a character in a problem"]))
    assert "\ud800" not in json.dumps(result, ensure_ascii=False)
    assert call(ask, "think", content="still there?")["isError"] is False


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "broken"}),
        ("resources/read", {"uri": "faulty://broken"}),
        ("resources/read", {"uri": "faulty://any/deep"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "broken"}, "argument": {"name": "x", "value": ""}},
        ),
    ],
)
def test_what_a_prompt_or_resource_raises_stays_with_us(ask: Ask, method: str, params: dict[str, Any]) -> None:
    answer = ask(method, params)
    assert answer["error"]["code"] == -32603
    assert answer["error"]["message"] == "Internal server error"
    assert CANARY not in json.dumps(answer)
    assert call(ask, "think", content="still there?")["isError"] is False


@pytest.mark.parametrize(
    ("method", "params"), [("prompts/get", {"name": "halved"}), ("resources/read", {"uri": "faulty://halved"})]
)
def test_half_a_character_of_a_prompt_or_resource(ask: Ask, method: str, params: dict[str, Any]) -> None:
    answer = ask(method, params)
    assert "result" in answer, answer
    assert "\\ud800" not in json.dumps(answer)


def test_a_tool_that_takes_too_long_is_stopped(ask: Ask) -> None:
    result = call(ask, "take_too_long")
    assert result["content"][0]["text"].startswith("Error TIMEOUT: `take_too_long` did not finish within 0.2 s")


def test_what_is_too_long_is_kept_in_a_file_that_can_be_read(place: tuple[Path, Path], ask: Ask) -> None:
    text = call(ask, "say_too_much")["content"][0]["text"]
    assert len(text) <= 30_000
    assert text.startswith("line 1 of")
    read = json.loads(text[text.rindex("Read {") + 5 : text.rindex("}") + 1])
    assert Path(read["file_path"]).read_text() == LONG


def test_the_reader_opens_what_was_kept_and_nothing_else_of_ours(workspace: Path, home: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"{number} {'x' * 90}\n" for number in range(1, 3001)))
    with pipe(workspace, home) as line:
        line.hello("somebody")
        line.call("menu_enter", mode="swe")
        found = line.call("grep", pattern="x", path="long.txt", output_mode="content", head_limit=0)
        text = found["content"][0]["text"]
        read = json.loads(text[text.rindex("Read {") + 5 : text.rindex("}") + 1])
        kept = Path(read["file_path"])
        assert kept.is_relative_to(workspace / ".menugate" / "spill")
        assert not line.call("Read", **read)["isError"]
        private = [path for path in (workspace / ".menugate").rglob("*") if path != kept]
        assert {"state.db", "ledger.anchor", "state.lock"} <= {path.name for path in private}
        for path in [*private, kept.parent / ".." / "state.db"]:
            refused = line.call("Read", file_path=str(path))
            assert refused["isError"], path
            assert refused["_meta"]["menugate/refusal"]["code"] == "PATH_REFUSED", (path, refused)
        changed = line.call("Write", file_path=str(kept), content="x")
        assert changed["_meta"]["menugate/refusal"]["code"] == "PATH_REFUSED"


def test_a_name_that_is_no_text_is_listed_over_every_door(workspace: Path, home: Path) -> None:
    """Another encoding made this name; it stands in the answer with a sign in its place."""
    (workspace / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    with pipe(workspace, home, "--mode", "data") as line, served(workspace, home, "--mode", "data") as here:
        line.hello("somebody")
        speakers = [Speaker(here, era).hello() for era in ERAS]
        for ask in (line.call, *(speaker.call for speaker in speakers)):
            assert "caf" in ask("fs_list_directory", path=".")["content"][0]["text"]
            assert "caf" in ask("glob", pattern="*.txt")["content"][0]["text"]
