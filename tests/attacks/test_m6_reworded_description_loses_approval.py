"""Does a yes hold for what was asked about, however the model words its call the second time, and for nothing else?"""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ElicitRequestParams, ElicitResult

from tests.clients.clients import held, over_stdio, text
from tests.clients.form import READING_TAKES, code_in
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

pytestmark = pytest.mark.anyio
DATA = ("--mode", "data", "--profile", "trusted")
TOUCH = "touch made && eval true"


def asks(result: dict[str, Any]) -> bool:
    return bool(result.get("isError")) and "APPROVAL_REQUIRED" in result["content"][0]["text"]


def waiting(work: Path, home: Path) -> list[dict[str, Any]]:
    return json.loads(typed(work, home, "approvals", "--json").out)


def approve(work: Path, home: Path) -> None:
    (one,) = waiting(work, home)
    assert typed(work, home, "approve", one["id"]).code == 0


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"description": "Make the file"}, {"description": "Creates a file called made"}),
        ({"description": "Make the file"}, {}),
        ({}, {"timeout": 60000}),
        ({"timeout": 60000}, {"timeout": 5000, "description": "other words"}),
        ({"run_in_background": False}, {}),
        ({}, {"exec_dir": "."}),
        ({"exec_dir": "src"}, {"exec_dir": "./src/"}),
        ({"exec_dir": "src"}, {"exec_dir": "WORK/src"}),
    ],
)
@pytest.mark.parametrize("carried", [False, True], ids=["by name", "carried"])
def test_other_words_for_the_same_command_find_the_yes(
    workspace: Path, home: Path, first: dict[str, Any], again: dict[str, Any], carried: bool
) -> None:
    def run(one: Pipe, **more: Any) -> dict[str, Any]:
        arguments = {"command": TOUCH, **more}
        if "exec_dir" in more:
            arguments["exec_dir"] = str(more["exec_dir"]).replace("WORK", str(workspace))
        return one.call("menu_call", tool="bash", arguments=arguments) if carried else one.call("bash", **arguments)

    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        assert asks(run(one, **first))
        approve(workspace, home)
        done = run(one, **again)
        assert not done["isError"], done
        assert (workspace / first.get("exec_dir", ".") / "made").exists()
        assert asks(run(one, **first)), "it was a yes to one call"


def test_asked_again_in_other_words_it_is_one_question(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        for words in ("Make the file", "Creates a file", ""):
            assert asks(one.call("bash", command=TOUCH, description=words))
    assert len(waiting(workspace, home)) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"command": f"{TOUCH} "},
        {"exec_dir": "src"},
        {"bash_id": "mine"},
        {"run_in_background": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_decides_still_binds(workspace: Path, home: Path, other: dict[str, Any]) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        assert asks(one.call("bash", command=TOUCH, description="Make the file"))
        approve(workspace, home)
        assert asks(one.call("bash", **{"command": TOUCH, "description": "Make the file"} | other))
        assert not (workspace / "made").exists()


def test_the_record_names_the_question_a_reworded_call_was_asked_with(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        assert asks(one.call("bash", command=TOUCH, description="Make the file"))
        approve(workspace, home)
        assert not one.call("bash", command=TOUCH)["isError"]
    shown = typed(workspace, home, "audit", "tail", "--json", "-n", "50").out
    rows = [json.loads(row) for row in shown.splitlines()]
    (call,) = (row for row in rows if row["kind"] == "intent" and row["tool"] == "bash")
    assert "you were asked, and approved" in typed(workspace, home, "audit", "why", str(call["seq"])).out


def test_two_numbers_that_are_one_are_one(workspace: Path, home: Path) -> None:
    (home / "menugate.yaml").write_text("rules:\n  ask: [Read]\n")
    with pipe(workspace, home, "--mode", "swe", "--config", str(home / "menugate.yaml")) as one:
        one.hello()
        assert asks(one.call("Read", file_path="notes.md", offset=1))
        approve(workspace, home)
        assert not one.call("Read", file_path="notes.md", offset=1.0)["isError"]
        assert asks(one.call("Read", file_path="notes.md"))
        approve(workspace, home)
        assert asks(one.call("Read", file_path="notes.md", offset=2))


# Where a path leads is part of what was asked about.


def linked(work: Path) -> Path:
    """`tmp/core.py` is nothing of worth, and one link away from what is."""
    for name in ("src", "scratch"):
        (work / name).mkdir(exist_ok=True)
        (work / name / "core.py").write_text(f"{name}\n")
    (work / "tmp").symlink_to("scratch")
    return work / "src" / "core.py"


def retarget(work: Path, to: str) -> None:
    (work / "new").symlink_to(to)
    os.replace(work / "new", work / "tmp")


def test_a_yes_does_not_follow_a_link_elsewhere(workspace: Path, home: Path) -> None:
    core = linked(workspace)
    with pipe(workspace, home, *DATA) as one:
        one.hello()
        assert asks(one.call("fs_delete", path="tmp/core.py"))
        (question,) = waiting(workspace, home)
        approve(workspace, home)
        retarget(workspace, "src")
        assert asks(one.call("fs_delete", path="tmp/core.py"))
        assert core.exists()
        assert "scratch/core.py" in question["message"], "the question says where the link leads"
        retarget(workspace, "scratch")
        assert not one.call("fs_delete", path="tmp/core.py")["isError"]
        assert not (workspace / "scratch" / "core.py").exists()
        assert core.exists()


async def test_nor_while_the_form_is_on_the_screen(workspace: Path, home: Path) -> None:
    core = linked(workspace)
    shown: list[str] = []

    async def human(_ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params.message)
        retarget(workspace, "src")
        await anyio.sleep(READING_TAKES)
        return ElicitResult(action="accept", content={"code": code_in(params.message)})

    async with held(over_stdio(workspace, home, *DATA), "legacy", elicitation_callback=human) as one:
        assert text(await one.call("fs_delete", path="tmp/core.py")).startswith("Error APPROVAL_REQUIRED")
    assert core.exists()
    assert "scratch/core.py" in shown[0]


def test_nor_does_a_folder_to_run_in(workspace: Path, home: Path) -> None:
    linked(workspace)
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        assert asks(one.call("bash", command=TOUCH, exec_dir="tmp"))
        approve(workspace, home)
        retarget(workspace, "src")
        assert asks(one.call("bash", command=TOUCH, exec_dir="tmp"))
        assert not (workspace / "src" / "made").exists()


def test_what_a_link_leads_to_is_not_what_was_asked_about(workspace: Path, home: Path) -> None:
    """The link may be deleted; what it leads to may not."""
    linked(workspace)
    (workspace / "alias.py").symlink_to("src/core.py")
    with pipe(workspace, home, *DATA) as one:
        one.hello()
        assert asks(one.call("fs_delete", path="alias.py"))
        approve(workspace, home)
        assert asks(one.call("fs_delete", path="src/core.py"))
        assert (workspace / "src" / "core.py").exists()
