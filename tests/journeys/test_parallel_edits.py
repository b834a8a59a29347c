"""T3: of edits of one file that a session made at once, one landed; to the others its own change was a stranger's."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.pipe import Pipe, pipe

LINES = 40


def call_at_once(one: Pipe, calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    sent = [one.send("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in calls]
    answers: dict[int, dict[str, Any]] = {}
    while len(answers) < len(sent):
        message = one.message()
        if message.get("id") in sent and "method" not in message:
            answers[message["id"]] = message["result"]
    return [answers[id] for id in sent]


@pytest.mark.parametrize("era", ERAS)
def test_edits_made_at_once_all_land(workspace: Path, home: Path, era: str) -> None:
    path = workspace / "f.txt"
    path.write_text("".join(f"line {number}.\n" for number in range(LINES)))
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("opencode", era)
        one.call("Read", file_path="f.txt")
        spelt = ("f.txt", "./f.txt", str(path), "src/../f.txt")
        answers = call_at_once(
            one,
            [
                ("Edit", {"file_path": spelt[at % 4], "old_string": f"line {at}.", "new_string": f"LINE {at}."})
                for at in range(LINES)
            ],
        )
        assert not [answer for answer in answers if answer.get("isError")]
        assert path.read_text() == "".join(f"LINE {number}.\n" for number in range(LINES))
        # Somebody else's change is still one.
        path.write_text("mine\n")
        last = one.call("Edit", file_path="f.txt", old_string="LINE 1.", new_string="x")
        assert "STALE" in last["content"][0]["text"]


BEFORE = "".join(f"line {number}\n" for number in range(10))
CHANGES = (
    (BEFORE, "line 0\n", "first\n"),
    (BEFORE, "line 9\n", "last\n"),
    (BEFORE, "line 9\n", "last"),
    (BEFORE, "line 8\nline 9\n", ""),
    (BEFORE.rstrip("\n"), "line 9", "line 9\n"),
    (BEFORE.rstrip("\n"), "line 1\n", ""),
    (BEFORE, "line 4\n", "line 4\nand\nmore\n"),
    ("one\n", "one\n", "two\n"),
    ("one", "one", "two"),
)


@pytest.mark.parametrize(("before", "old", "new"), CHANGES)
def test_the_diff_of_an_edit_can_be_applied(workspace: Path, home: Path, before: str, old: str, new: str) -> None:
    """M20 and T8: hunks near a file's end were wrong, and a phantom last line was printed."""
    path = workspace / "f.txt"
    path.write_text(before)
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("opencode")
        one.call("Read", file_path="f.txt")
        answer = one.call("Edit", file_path="f.txt", old_string=old, new_string=new)
    assert not answer.get("isError"), answer
    text = answer["content"][0]["text"]
    patch = text[text.index("--- a/") :].partition("\nIt now reads:")[0] + "\n"
    after = path.read_text()
    path.write_text(before)
    ran = subprocess.run(["git", "apply", "-"], cwd=workspace, input=patch, text=True, capture_output=True)
    assert ran.returncode == 0, (ran.stderr, patch)
    assert path.read_text() == after
