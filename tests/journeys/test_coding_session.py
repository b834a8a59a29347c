"""How often is the user asked in an ordinary coding session? A real client, server, repository and package."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.yaml_text import load_yaml

CALLS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "coding_session.yaml").read_text())
REASONS = {"leaves the workspace", "destroys", "unknown code"}
MAX_QUESTIONS = 3
FILES = {
    "README.md": "# Sums\n\nAdds numbers.\n",
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['src']\n",
    "Makefile": "test:\n\tpython -m pytest -q\n",
    ".gitignore": ".venv/\nnode_modules/\n__pycache__/\nbuild/\n",
    "src/sums/__init__.py": "",
    "src/sums/calc.py": "def total(n):\n    return sum(range(1, n))\n",
    "tests/test_calc.py": "from sums.calc import total\n\n\ndef test_total():\n    assert total(4) == 10\n",
    "scripts/report.py": "print('report')\n",
    "scripts/setup.sh": "#!/bin/sh\necho set up\n",
}


def furnish(work: Path) -> None:
    """A repository with a package, a failing test and an environment of its own that holds pytest."""
    for path, content in FILES.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(content)
    (work / "scripts" / "setup.sh").chmod(0o755)
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ada Lovelace"],
        ["config", "user.email", "ada@example.org"],
        ["add", "."],
        ["commit", "-qm", "First"],
    ):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=work, check=True)
    (packages,) = (work / ".venv").glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
    # The last two would look for packages beyond this machine.
    for path, text in {
        ".venv/bin/pytest": f"#!{work}/.venv/bin/python\nimport pytest\nraise SystemExit(pytest.main())\n",
        ".venv/bin/pip": "#!/bin/sh\necho the pip of the project: $*\n",
        "node_modules/.bin/tsc": "#!/bin/sh\necho the tsc of the project: $*\n",
    }.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
        (work / path).chmod(0o755)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Generator[Pipe]:
    folder = tmp_path_factory.mktemp("session")
    work, home = folder / "work", folder / "home"
    home.mkdir()
    furnish(work)
    sandbox = json.loads(typed(work, home, "status", "--json").out)["guards"]["sandbox"]
    if sandbox != "bubblewrap":
        pytest.skip("without bubblewrap a command needs more than here, or may write less")
    with pipe(work, home) as client:
        client.hello("opencode")
        client.call("menu_enter", mode="swe")
        yield client


def call_of(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return ("bash", {"command": row["bash"]}) if "bash" in row else (row["call"], row.get("with", {}))


def test_the_table_has_sixty_calls_and_few_questions_with_a_reason() -> None:
    asking = [row for row in CALLS if row["answer"] == "asks"]
    assert len(CALLS) == 60
    assert len(asking) <= MAX_QUESTIONS
    assert {row.get("for") for row in asking} <= REASONS


def test_the_session_is_answered_as_the_table_says(session: Pipe) -> None:
    """One test: each call builds on those before it."""
    wrong: list[str] = []
    for row in CALLS:
        tool, arguments = call_of(row)
        answer = session.call(tool, **arguments)
        text = answer["content"][0]["text"]
        code = text.removeprefix("Error ").split(":")[0] if answer["isError"] else "runs"
        code = "asks" if code == "APPROVAL_REQUIRED" else code
        if code != row["answer"] or str(row.get("says", "")) not in text:
            wrong.append(f"{tool} {arguments}: {code}\n{text[:500]}")
    assert not wrong, "\n\n".join(wrong)
