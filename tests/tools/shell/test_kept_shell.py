"""Does a line in a shell that stays open do what it says, whatever earlier lines have made of its names?"""

import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe
from tests.clients.typed import typed
from tests.tools.shell.house import bash, served, text
from tests.yaml_text import load_yaml

ROWS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "tables" / "kept_shells.yaml").read_text())


class Shells:
    """A server at `normal`, and shells in which lines may run unasked for a moment."""

    def __init__(self, workspace: Path, home: Path, server: Pipe) -> None:
        self.workspace, self.home, self.server = workspace, home, server

    def prepare(self, name: str, *lines: str) -> None:
        assert "a" in bash(self.server, "echo a", bash_id=name)
        self.choose("trusted")
        for line in lines:
            bash(self.server, line, bash_id=name)
        self.choose("normal")

    def choose(self, profile: str) -> None:
        assert typed(self.workspace, self.home, "profile", profile).code == 0


@pytest.fixture(scope="module")
def at_normal(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shells]:
    root = tmp_path_factory.mktemp("kept")
    work, home = root / "work", root / "home"
    for folder in (home, work / "deep", work / ".venv" / "bin"):
        folder.mkdir(parents=True)
    (work / "a.txt").write_text("one\n")
    (work / ".venv" / "bin" / "activate").write_text(
        'deactivate() { :; }\nexport VIRTUAL_ENV="$PWD/.venv"\nPATH="$VIRTUAL_ENV/bin:$PATH"\nexport PATH\n'
    )
    with served(work, home, "--profile", "normal") as client:
        yield Shells(work, home, client)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['before']}: {row['line']}")
def test_a_line_runs_unasked_only_if_its_names_mean_what_they_mean_in_a_new_shell(
    at_normal: Shells, row: dict[str, Any]
) -> None:
    name = f"row {ROWS.index(row)}"
    at_normal.prepare(name, row["before"])
    said = bash(at_normal.server, row["line"], bash_id=name)
    at_normal.server.call("kill_shell", bash_id=name)
    if row["because"] is None:
        assert not said.startswith("Error"), said
    else:
        assert said.startswith("Error APPROVAL_REQUIRED"), said
        assert row["because"] in said
    assert not (at_normal.workspace / "planted").exists()


def asked(at: Shells, line: str, **more: Any) -> str:
    """The id of the question about this line."""
    said = bash(at.server, line, **more)
    assert "APPROVAL_REQUIRED" in said, said
    return said.partition("menugate approve ")[2].split("`")[0]


def facts(at: Shells, id: str) -> dict[str, str]:
    shown = json.loads(typed(at.workspace, at.home, "approvals", "show", id, "--json").out)
    return {one["name"]: one["value"] for one in shown["at_the_moment"]}


def test_the_question_says_what_a_name_means_here_and_the_approval_is_bound_to_it(at_normal: Shells) -> None:
    at_normal.prepare("told", "rm() { echo mine; }; alias mv='echo moved'; x=spare; y=5")
    first = asked(at_normal, 'rm "$x"', bash_id="told")
    told = facts(at_normal, first)
    assert told["what the line names is defined in it"] == "rm () \n{ \n    echo mine\n}"
    assert told["its functions and aliases"].startswith("rm, mv (SHA-256 ")
    assert told["its variables"] == 'declare -- x="spare"'
    assert typed(at_normal.workspace, at_normal.home, "approve", first).code == 0
    at_normal.prepare("told", "rm() { echo other; }")
    second = asked(at_normal, 'rm "$x"', bash_id="told")
    assert second != first
    assert "echo other" in facts(at_normal, second)["what the line names is defined in it"]
    assert typed(at_normal.workspace, at_normal.home, "approve", second).code == 0
    assert bash(at_normal.server, 'rm "$x"', bash_id="told").startswith("other\n")
    third = asked(at_normal, "mv a b", bash_id="told")
    assert facts(at_normal, third)["what the line names is defined in it"] == "alias mv='echo moved'"


HIDING = (
    'builtin() { case "$*" in "declare -F"|"declare -f") :;; *) command "$@";; esac; }\ndocker() { touch planted; }\n'
)


def test_a_file_that_hides_its_functions_is_named(at_normal: Shells) -> None:
    """A shell cannot be asked about itself once a file has replaced what it is asked with."""
    (at_normal.workspace / "venv/bin").mkdir(parents=True)
    (at_normal.workspace / "venv/bin/activate").write_text(HIDING)
    assert not bash(at_normal.server, ". venv/bin/activate", bash_id="hides").startswith("Error")
    told = facts(at_normal, asked(at_normal, "docker push x", bash_id="hides"))
    assert told["it has run files that can hide what they defined"] == ". venv/bin/activate"


def test_an_allow_rule_does_not_answer_what_a_name_means_here(at_normal: Shells) -> None:
    (at_normal.home / "rules.yaml").write_text('rules:\n  allow: ["bash(docker ps:*)"]\n')
    rules = ("--profile", "normal", "--config", str(at_normal.home / "rules.yaml"))
    with served(at_normal.workspace, at_normal.home, *rules) as client:
        at = Shells(at_normal.workspace, at_normal.home, client)
        assert "[in shell" in bash(client, "docker ps", bash_id="allowed")
        at.prepare("allowed", "docker() { touch planted; }")
        assert "`docker` is a function" in bash(client, "docker ps -a", bash_id="allowed")
    assert not (at_normal.workspace / "planted").exists()


def test_typing_into_a_shell_counts_as_a_line(at_normal: Shells) -> None:
    at_normal.prepare("typed")
    at_normal.choose("trusted")
    typing = {"content": "ls() { touch planted; }", "press_enter": True}
    at_normal.server.call("write_to_shell", shell_id="typed", **typing)
    at_normal.choose("normal")
    assert "`ls` is a function" in bash(at_normal.server, "ls", bash_id="typed")


def test_a_line_is_not_typed_into_a_program(at_normal: Shells) -> None:
    at_normal.prepare("busy")
    assert "continues in its shell" in bash(at_normal.server, "sleep 600", bash_id="busy", timeout=0.3)
    assert "still runs an earlier line" in bash(at_normal.server, "ls", bash_id="busy", timeout=0.3)
    at_normal.server.call("write_to_shell", shell_id="busy", content="\x03")
    assert "a.txt" in bash(at_normal.server, "ls", bash_id="busy")
    at_normal.server.call("bash", command="sleep 600", bash_id="program", run_in_background=True)
    assert "would get this line as its input" in bash(at_normal.server, "ls", bash_id="program")
    at_normal.server.call("kill_shell", shell_id="program")


def test_what_a_shell_says_about_itself_is_no_output(at_normal: Shells) -> None:
    at_normal.prepare("quiet", "f() { ls; }", "(sleep 0.2; echo late) &")
    assert "declare" not in bash(at_normal.server, "sleep 0.4; echo now", bash_id="quiet")
    shown = text(at_normal.server.call("bash_output", bash_id="quiet", offset=0))
    assert "late" in shown
    assert "declare" not in shown


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("./release.sh", {}),
        ("bash release.sh --now", {}),
        ("bash -c './release.sh now'", {}),
        ("cd deep && . ../release.sh", {}),
        ("nohup ./release.sh", {}),
        ("release.sh", {"exec_dir": "deep"}),
        ("bash ../release.sh", {"exec_dir": "deep"}),
        ("./release.sh", {"bash_id": "runs"}),
        ("rm spare", {}),
    ],
)
def test_an_approval_is_bound_to_the_files_that_the_line_runs(
    at_normal: Shells, line: str, how: dict[str, str]
) -> None:
    """`rm` runs the project's own `.venv/bin/rm` if there is one."""
    planted = {"release.sh": ".venv/bin/release.sh", "rm spare": ".venv/bin/rm"}
    program = at_normal.workspace / planted.get(line, "release.sh")
    program.write_text("echo one\n")
    program.chmod(0o755)
    (at_normal.workspace / "spare").touch()
    first = asked(at_normal, line, **how)
    question = typed(at_normal.workspace, at_normal.home, "approvals", "show", first).out
    assert hashlib.sha256(b"echo one\n").hexdigest() in question
    assert typed(at_normal.workspace, at_normal.home, "approve", first).code == 0
    program.write_text("echo two\n")
    assert asked(at_normal, line, **how) != first
    program.unlink()
