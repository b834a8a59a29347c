"""Did everyday work become harder? The table says what ordinary calls met at 5b4ca16, what they meet now, and why."""

import json
import re
import secrets
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.yaml_text import load_yaml

GROUPS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "everyday.yaml").read_text())
ROWS: list[dict[str, Any]] = [row for group in GROUPS for row in group["calls"]]
ORDER = ("allow", "ask", "deny")
MISSING = "deny NOT_FOUND confirmation"
ASK = "ask APPROVAL_REQUIRED confirmation"
FINDING = re.compile(r"\b[RHNSMTPA][0-9]+\b")
FILES = {
    "src/calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": "x = 1\n",
    "test_sums.py": (
        "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_one(self):\n"
        "        self.assertEqual(1 + 1, 2)\n"
    ),
    "notes.md": "# Notes\n\nfirst\n",
    ".env": "A=1\n",
    ".gitignore": ".env\n",
    ".vscode/settings.json": "{}\n",
    ".mcp.json": "{}\n",
    "spare.txt": "x\n",
    "old.txt": "x\n",
}


def call_of(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return ("bash", {"command": row["bash"]}) if "bash" in row else (row["tool"], row.get("with", {}))


def is_now(row: dict[str, Any]) -> dict[str, str]:
    return row["was"] | row.get("is", {})


def name(value: object) -> str:
    if not isinstance(value, dict):
        return str(value)
    tool, arguments = call_of(cast("dict[str, Any]", value))
    return f"{tool} {json.dumps(arguments)}"


CASES = [(row, profile) for row in ROWS for profile in row["was"]]
REAL = [(row, profile) for row, profile in CASES if row.get("works") or is_now(row)[profile] != "allow"]


def furnish(folder: Path) -> tuple[Path, Path]:
    """A repository with one commit and some new files, and an empty home."""
    work, home = folder / "work", folder / "home"
    home.mkdir(parents=True)
    for path, content in FILES.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(content)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ada Lovelace"],
        ["config", "user.email", "ada@example.org"],
        ["add", "src", ".gitignore"],
        ["commit", "-qm", "First"],
    ):
        subprocess.run(["git", *words], cwd=work, env=env, check=True, capture_output=True)
    return work, home


class Ground:
    """One repository for each profile, with a server in it that is started when it is first asked."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.work, self.home = furnish(folder / "asked")
        self._folder, self._stack = folder, stack
        self.sandbox = json.loads(typed(self.work, self.home, "status", "--json").out)["guards"]["sandbox"]
        self.server = cache(self._served)

    def explained(self, row: dict[str, Any], profile: str) -> dict[str, Any]:
        tool, arguments = call_of(row)
        said = typed(self.work, self.home, "explain", tool, json.dumps(arguments), "--json", "--profile", profile)
        assert said.code == 0, said.err
        return json.loads(said.out)

    def _served(self, profile: str) -> Pipe:
        one = self._stack.enter_context(pipe(*furnish(self._folder / profile), "--profile", profile))
        one.hello("mcp")
        return one

    def stage(self, profile: str) -> None:
        """Nobody is asked about an empty commit."""
        work = self._folder / profile / "work"
        (work / f"{secrets.token_hex(4)}.txt").write_text("new\n")
        subprocess.run(["git", "add", "."], cwd=work, check=True, capture_output=True)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ground]:
    with ExitStack() as stack:
        yield Ground(tmp_path_factory.mktemp("everyday"), stack)


@pytest.mark.parametrize(("row", "profile"), CASES, ids=name)
def test_the_decision_is_the_one_in_the_table(ground: Ground, row: dict[str, Any], profile: str) -> None:
    found = ground.explained(row, profile)
    decision = " ".join(filter(None, (found["verdict"], found["code"], found["layer"])))
    expected = is_now(row)[profile]
    # Nobody is asked about a program that this machine does not have.
    among = (expected, MISSING) if expected.endswith(("ask", "confirmation")) else (expected,)
    assert decision.replace(ASK, "ask") in among, "list it under `is`, with the reason in `why`"


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_every_difference_is_listed_with_its_reason(row: dict[str, Any]) -> None:
    differs = row.get("is", {})
    assert differs.keys() <= row["was"].keys()
    assert bool(differs) is bool(row.get("why")), "`is` and `why` go together"
    for profile, now in differs.items():
        before = row["was"][profile]
        assert now != before, "`is` lists only what became another decision"
        if ORDER.index(now.split()[0]) > ORDER.index(before.split()[0]):
            assert FINDING.search(row["why"]), "what got harder names the finding that wanted it"


@pytest.mark.parametrize(("row", "profile"), REAL, ids=name)
def test_a_real_call_meets_that_decision_and_what_is_allowed_works(
    ground: Ground, row: dict[str, Any], profile: str
) -> None:
    if call_of(row)[0] in ("bash", "write_to_shell") and ground.sandbox != "bubblewrap":
        pytest.skip("without bubblewrap a command needs more than here, or may write less")
    tool, arguments = call_of(row)
    expected, mode = is_now(row)[profile], ground.explained(row, profile)["mode"]
    if mode is not None and not tool.startswith("menu_"):
        tool, arguments = "menu_call", {"tool": tool, "arguments": arguments, "mode": mode}
    server = ground.server(profile)
    if call_of(row)[0] == "git_commit":
        ground.stage(profile)
    answer = server.call(tool, **arguments)
    said = answer["content"][0]["text"]
    if expected == "allow":
        assert not answer["isError"], said
        assert "[exit code" not in said
    else:
        code = (ASK if expected == "ask" else expected).split()[1]
        assert answer["isError"]
        # Nobody is asked about a change of a file that was not read, or about a program that does not exist here.
        codes = (code, "NOT_READ", "NOT_FOUND") if expected.endswith(("ask", "confirmation")) else (code,)
        assert said.split(":")[0] in [f"Error {one}" for one in codes], said
