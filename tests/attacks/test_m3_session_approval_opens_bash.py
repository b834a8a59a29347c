"""Does a yes for the session stay with the command it was given for? Another line, folder or shell asks again."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ElicitRequestParams, ElicitResult

from tests.clients.clients import ERAS, held, over_stdio, text
from tests.clients.form import READING_TAKES, code_in
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

pytestmark = pytest.mark.anyio
AWK = "eval awk 1 tox.ini"


@pytest.fixture
def place(workspace: Path) -> Path:
    (workspace / "tox.ini").write_text("[tox]\n")
    (workspace / "dir").mkdir()
    (workspace / "dir" / "keep.txt").write_text("keep me\n")
    return workspace


@pytest.fixture(params=ERAS)
def line(request: pytest.FixtureRequest, place: Path, home: Path) -> Generator[Pipe]:
    with pipe(place, home, "--mode", "swe") as one:
        one.hello(era=request.param)
        yield one


def said(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


def asks(result: dict[str, Any]) -> bool:
    return bool(result.get("isError")) and "APPROVAL_REQUIRED" in said(result)


def approve(place: Path, home: Path, tool: str, *flags: str) -> str:
    (waiting,) = (one for one in json.loads(typed(place, home, "approvals", "--json").out) if one["tool"] == tool)
    done = typed(place, home, "approve", waiting["id"], *flags)
    assert done.code == 0, done.err
    return done.out


def test_a_yes_to_one_command_is_none_to_the_next(place: Path, home: Path, line: Pipe) -> None:
    assert asks(line.call("bash", command=AWK))
    out = approve(place, home, "bash", "--for-session")
    assert not line.call("bash", command=AWK).get("isError")
    for other in ("rm -rf dir", "rmdir dir", f"{AWK} ", f"{AWK}; rm -rf dir", "eval awk 1 notes.md"):
        assert asks(line.call("bash", command=other)), other
    assert (place / "dir" / "keep.txt").exists()
    # What it was given for goes on to run unasked, as often as it is called.
    for _ in range(2):
        assert not line.call("bash", command=AWK).get("isError")
    assert "this `bash` call and every repetition of it, in this session" in " ".join(out.split())
    assert "every `bash` call" not in out


def test_another_folder_shell_or_way_of_running_asks_again(place: Path, home: Path, line: Pipe) -> None:
    assert asks(line.call("bash", command=AWK))
    approve(place, home, "bash", "--for-session")
    for more in ({"exec_dir": "dir"}, {"bash_id": "mine"}, {"shell_id": "mine"}, {"run_in_background": True}):
        assert asks(line.call("bash", command=AWK, **more)), more
    for same in ({"exec_dir": "."}, {"exec_dir": str(place)}, {"run_in_background": False}, {"description": "look"}):
        assert not line.call("bash", command=AWK, **same).get("isError"), same


def test_a_yes_to_one_line_typed_is_none_to_the_next(place: Path, home: Path) -> None:
    """The same by the tool that types into a shell."""
    with pipe(place, home, "--mode", "swe") as one:
        one.hello()
        assert not one.call("bash", command="cat", run_in_background=True, bash_id="mine")["isError"]
        assert asks(one.call("write_to_shell", shell_id="mine", content="hello", press_enter=True))
        # Nobody can tell what a line that is typed into a program makes it load.
        (waiting,) = json.loads(typed(place, home, "approvals", "--json").out)
        assert "can only be approved once" in typed(place, home, "approve", waiting["id"], "--for-session").err
        approve(place, home, "write_to_shell")
        assert not one.call("write_to_shell", shell_id="mine", content="hello", press_enter=True)["isError"]
        assert asks(one.call("write_to_shell", shell_id="mine", content="rm -rf dir", press_enter=True))


@pytest.mark.parametrize("era", ERAS)
async def test_the_form_says_what_it_covers_and_covers_no_more(place: Path, home: Path, era: str) -> None:
    shown: list[Any] = []

    async def human(_ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        """Says yes for the session once, and no from then on."""
        shown.append(params.model_dump())
        await anyio.sleep(READING_TAKES)
        if len(shown) > 1:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"scope": "session", "code": code_in(params.message)})

    async with held(over_stdio(place, home, "--mode", "swe"), era, elicitation_callback=human) as one:
        for _ in range(2):
            assert not (await one.call("bash", command=AWK)).is_error
        assert len(shown) == 1
        assert text(await one.call("bash", command="rm -rf dir")).startswith("Error APPROVAL_DENIED")
        assert len(shown) == 2
        assert "this `bash` call and every repetition of it, in this session" in str(shown)
    assert (place / "dir" / "keep.txt").exists()


def test_other_tools_keep_the_yes_for_the_session(place: Path, home: Path) -> None:
    (home / "menugate.yaml").write_text("rules:\n  ask: [fs_read_file]\n")
    with pipe(place, home, "--mode", "data", "--config", str(home / "menugate.yaml")) as one:
        one.hello()
        assert asks(one.call("fs_read_file", path="tox.ini"))
        assert "every `fs_read_file` call" in approve(place, home, "fs_read_file", "--for-session")
        for path in ("tox.ini", "notes.md"):
            assert not one.call("fs_read_file", path=path)["isError"]


@pytest.mark.parametrize("words", [(), ("--for-session",)])
def test_a_shell_that_stays_has_to_stand_where_it_stood(place: Path, home: Path, words: tuple[str, ...]) -> None:
    """`cd` is not asked about, and what was approved in one folder would run in another."""
    for folder in ("here", "there"):
        (place / folder / "build").mkdir(parents=True)
    with pipe(place, home, "--mode", "swe") as one:
        one.hello()
        assert not one.call("bash", command="cd here", bash_id="mine")["isError"]
        assert asks(one.call("bash", command="mv build gone", bash_id="mine"))
        (question,) = json.loads(typed(place, home, "approvals", "--json").out)
        assert f"the shell stands in: {json.dumps(str(place / 'here'))}" in question["message"]
        approve(place, home, "bash", *words)
        assert not one.call("bash", command="cd ../there", bash_id="mine")["isError"]
        assert asks(one.call("bash", command="mv build gone", bash_id="mine"))
        assert (place / "there" / "build").exists()
        assert not one.call("bash", command="cd ../here", bash_id="mine")["isError"]
        assert not one.call("bash", command="mv build gone", bash_id="mine")["isError"]
        assert not (place / "here" / "build").exists()
