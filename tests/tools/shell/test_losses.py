"""Does a question about a line of shell say what would be gone, and how much of it git could bring back?"""

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.yaml_text import load_yaml
from tools.shell.line_parts import find_line_parts

ROWS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "tables" / "line_losses.yaml").read_text())


@pytest.fixture
def repository(workspace: Path) -> Path:
    for name in (
        "lib/a.py",
        "lib/b.py",
        "build/x",
        "build/deep/y",
        "clone/.git/HEAD",
        "clone/z",
        "docs/n",
        "other/a.py",
        "other/lib/z",
    ):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345\n")
    (workspace / "empty").mkdir()
    (workspace / "link").symlink_to("lib")
    for words in (("init", "-q"), ("add", "lib/a.py", "docs/n")):
        subprocess.run(["git", *words], cwd=workspace, check=True, env={"PATH": "/usr/bin:/bin"}, capture_output=True)
    (workspace / "docs" / "n").write_text("changed since\n")
    return workspace


@pytest.fixture
def client(repository: Path, home: Path) -> Generator[Pipe]:
    with pipe(repository, home, "--mode", "swe", "--profile", "normal") as one:
        one.hello("opencode")
        yield one


def test_a_question_says_what_would_be_gone(repository: Path, home: Path, client: Pipe) -> None:
    for row in ROWS:
        answer = client.call("bash", command=row["line"])["content"][0]["text"]
        assert "APPROVAL_REQUIRED" in answer, answer
        id = answer.partition("menugate approve ")[2].split("`")[0]
        shown = typed(repository, home, "approvals", "show", id).out.split("What the line does:")
        if not row["says"]:
            assert "; deletes" not in shown[-1] and "; overwrites" not in shown[-1], (row, shown)
            continue
        begins = json.dumps(row.get("part", row["line"]))
        found = [line for line in shown[-1].splitlines() if line.lstrip().startswith(begins)]
        assert len(found) == 1, shown
        part = found[0]
        assert part.split("; ")[1:] == row["says"], row
        parts = json.loads(typed(repository, home, "approvals", "show", id, "--json").out)["parts"]
        losses = [loss for one in parts for loss in one["losses"]]
        assert [loss["kind"] for loss in losses] == row["kinds"], losses
        assert [loss["tracked"] for loss in losses] == row["tracked"], losses


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("git checkout -q HEAD~1", []),
        ("git checkout main@{1}", []),
        ("git checkout 'main^^'", []),
        ("git checkout HEAD~1 lib/a.py", ["lib/a.py"]),
        ("git checkout HEAD^ -- lib/a.py", ["lib/a.py"]),
        ("git checkout -- HEAD~1", ["HEAD~1"]),
        ("git checkout notes~", ["notes~"]),
    ],
)
def test_a_commit_is_taken_for_no_file(line: str, paths: list[str]) -> None:
    (part,) = find_line_parts(line, ".")
    assert [loss.path for loss in part.losses] == paths
