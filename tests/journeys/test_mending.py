"""Can a fault in a real project be found, mended, verified and committed by these tools alone, the same way twice?"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_server.settings import read_settings
from mcp_server.state.engine.rows import LedgerFilter
from mcp_server.state.reader import Reader
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import environment
from tests.journeys.test_todos import said

PROJECT = Path(__file__).parents[1] / "data" / "iniconfig"
SOUND, SEEDED = 'name, value = line.split("=", 1)', 'name, value = line.split("=")'
TEST = "tests.test_ini.Values.test_a_sign_inside"


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project under git, with a fault in its last commit."""
    folder = tmp_path_factory.mktemp("origin")
    for name, place in (
        ("__init__", "iniconfig"),
        ("_parse", "iniconfig"),
        ("exceptions", "iniconfig"),
        ("test_ini", "tests"),
    ):
        (folder / place).mkdir(exist_ok=True)
        (folder / place / f"{name}.py").write_text((PROJECT / f"{name}.py.txt").read_text())
    (folder / "tests" / "__init__.py").touch()
    (folder / "LICENSE").write_text((PROJECT / "LICENSE").read_text())
    (folder / ".gitignore").write_text("__pycache__/\n")
    git(folder, "init", "-q", "-b", "main")
    for key, value in (("user.name", "Somebody"), ("user.email", "somebody@example.org")):
        git(folder, "config", key, value)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "iniconfig 2.3.1")
    parse = folder / "iniconfig" / "_parse.py"
    text = parse.read_text()
    assert text.count(SOUND) == 1
    parse.write_text(text.replace(SOUND, SEEDED))
    git(folder, "commit", "-qam", "Simplify the parser")
    return folder


@dataclass(frozen=True)
class EndState:
    tree: str
    parents: tuple[str, ...]
    messages: tuple[str, ...]
    left: str
    todos: tuple[tuple[str, str, str], ...]
    changes: tuple[tuple[str, str, str], ...]
    calls: tuple[tuple[str, str], ...]


def call(one: Pipe, tool: str, /, **arguments: Any) -> str:
    answer = one.call(tool, **arguments)
    assert not answer["isError"], f"{tool}: {said(answer)}"
    return said(answer)


def mend(one: Pipe) -> None:
    """What a client is scripted to do; it knows the test that fails, and nothing else."""
    one.hello()
    call(one, "menu_enter", mode="swe")
    criteria = [
        {"type": "test_passes", "params": {"test": TEST}},
        {"type": "command_exit_zero", "params": {"command": "python3 -m unittest"}},
    ]
    made = one.call("TodoCreate", content=f"Make {TEST} pass", acceptance_criteria=criteria)
    todo = made["structuredContent"]["id"]
    call(one, "TodoStart", id=todo)
    assert "1 in progress" in call(one, "TodoRead")
    call(one, "advance_phase")
    found = call(one, "grep", pattern=r"split\(", path="iniconfig", output_mode="content")
    path = next(line.split(":")[0] for line in found.splitlines() if '"="' in line)
    call(one, "advance_phase", suspect_files=[path], hypothesis="A value that holds the sign is split in three.")
    shown = call(one, "Read", file_path=path)
    (line,) = (text.partition("\t")[2] for text in shown.splitlines() if 'split("=")' in text)
    call(
        one, "advance_phase", root_cause="split without a limit, so that unpacking fails and `:` is looked for instead"
    )
    call(one, "Edit", file_path=path, old_string=line.strip(), new_string=line.strip().replace('"="', '"=", 1'))
    call(one, "advance_phase", modified_files=[path])
    seen = one.call("analyze_test_failure", test_name=TEST, compare_baseline=True)
    assert seen["structuredContent"]["verdict"] == "mended", said(seen)
    assert "OK" in call(one, "bash", command="python3 -m unittest")
    call(one, "advance_phase", pass_to_pass_status="all_passed")
    evidence = [{"type": "test_result", "data": "python3 -m unittest: OK"}]
    explanation = "Values are split at the first sign again, as they were."
    call(one, "TodoClaim", id=todo, explanation=explanation, evidence=evidence, auto_verify=True)
    assert "[x]" in call(one, "TodoRead")
    assert "every tool" in call(one, "advance_phase", fail_to_pass_status="all_passed")
    call(one, "git_add", files=[path])
    call(one, "git_commit", message="Split a value at the first sign only")
    call(one, "complete", final_answer=f"{TEST} passes; the parser was mended and the change committed.")


def end(workspace: Path, home: Path) -> EndState:
    settings = read_settings({"workspace": str(workspace)}, environment(home))
    with Reader.open(settings.url, secrets=settings.secrets) as state:
        assert state.verify().ok
        todos = tuple((todo.mark, todo.body["content"], todo.body["by"]) for _, todo in state.load_records("todo"))
        records = [row.fields for row in state.read_rows(LedgerFilter(kinds=("record",)))]
        rows = state.read_rows(LedgerFilter(kinds=("intent", "refusal", "question")))
        calls = tuple((row.kind, str(row.fields["tool"])) for row in rows)
    return EndState(
        tree=git(workspace, "rev-parse", "HEAD^{tree}"),
        parents=tuple(git(workspace, "rev-list", "HEAD~1").split()),
        messages=tuple(git(workspace, "log", "--format=%an %s").splitlines()),
        left=git(workspace, "status", "--porcelain") + git(workspace, "worktree", "list", "--porcelain").split("\n")[1],
        todos=todos,
        changes=tuple((one["record"], one["event"], one["to"]) for one in records),
        calls=calls,
    )


@pytest.mark.heavy
def test_the_same_script_mends_it_the_same_way_twice(origin: Path, tmp_path: Path) -> None:
    ends: list[EndState] = []
    for turn in ("first", "second"):
        workspace, home = tmp_path / turn / "work", tmp_path / turn / "home"
        home.mkdir(parents=True)
        git(tmp_path, "clone", "-q", str(origin), str(workspace))
        for key, value in (("user.name", "Somebody"), ("user.email", "somebody@example.org")):
            git(workspace, "config", key, value)
        with pipe(workspace, home, "--profile", "trusted") as one:
            mend(one)
            assert one.bye() == 0
        ends.append(end(workspace, home))
    first, second = ends
    assert first.todos == (("verified", f"Make {TEST} pass", "criteria"),)
    assert first.messages[0] == "Somebody Split a value at the first sign only"
    assert (first.tree, first.parents, first.messages) == (second.tree, second.parents, second.messages)
    assert (first.todos, first.changes, first.calls) == (second.todos, second.changes, second.calls)
    # Whole again, byte for byte: the tree is the one from before the fault.
    assert first.tree == git(origin, "rev-parse", "HEAD~1^{tree}")
    assert not [line for line in first.left.splitlines() if not line.startswith("HEAD ")]
