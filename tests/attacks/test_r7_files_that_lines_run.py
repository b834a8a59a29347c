"""Can a line that was approved run a file that its question did not name, and that was changed since?"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.sizes import FULL
from tests.yaml_text import load_yaml

LINES: list[str] = load_yaml((Path(__file__).parents[1] / "tables" / "run_files.yaml").read_text())
SCRIPTS = ("run.sh", "release.sh", "build", "x.sh", "tool.sh", ".venv/bin/tool.sh", "evil/run.sh")
FOLDERS = ("", "sub/", "docs/", "sub/sub/")
PYTHON = ("a.py", "build.p", "tools/__main__.py", "tools/deep.py", "tools/deep/__main__.py")
OTHERS = {
    "build.awk": 'BEGIN {{ print "{0}" }}\n',
    "prog": 'BEGIN {{ print "{0}" }}\n',
    "build.pl2": 'print "{0}\\n";\n',
    "build.mk": "all:\n\t@echo {0}\n",
    "list": "build\n",
}
FINE, EVIL = "said: fine", "said: evil"


def list_files() -> dict[str, str]:
    shells = {f"{folder}{name}": "#!/bin/sh\necho {0}\n" for folder in FOLDERS for name in SCRIPTS[:3]}
    return {
        **shells,
        **dict.fromkeys(SCRIPTS, "#!/bin/sh\necho {0}\n"),
        **dict.fromkeys(PYTHON, 'print("{0}")\n'),
        **OTHERS,
        "sub/package.json": '{{"scripts": {{"x": "echo {0}"}}}}\n',
    }


FILES = list_files()


def write(workspace: Path, name: str, says: str) -> None:
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[name].format(says))
    path.chmod(0o644 if Path(name).name == "prog" else 0o755)


@pytest.fixture
def client(workspace: Path, home: Path) -> Generator[Pipe]:
    with pipe(workspace, home, "--profile", "normal", "--mode", "swe") as one:
        one.hello()
        yield one


def said(answer: dict[str, Any]) -> str:
    return "\n".join(block.get("text", "") for block in answer["content"])


def find_id(answer: str) -> str:
    return answer.partition("menugate approve ")[2].split("`")[0]


ODD = ("linked.sh", "large.sh")
"""A file with a second name, and one that is too large to look through."""


def plant_odd_files(workspace: Path) -> None:
    for name in ODD:
        (workspace / name).unlink(missing_ok=True)
        (workspace / name).write_text(f"echo {FINE}\nexit\n")
    (workspace / "other name").unlink(missing_ok=True)
    (workspace / "other name").hardlink_to(workspace / "linked.sh")
    os.truncate(workspace / "large.sh", 300 << 20)
    if not (workspace / "docs" / "lb").is_symlink():
        (workspace / "docs" / "lb").symlink_to("../sub/sub")


def is_unbound(shown: dict[str, Any], name: str) -> bool:
    """True if the question gives no digest of the file."""
    return not any(target["path"] == name and target["sha256"] for target in shown["targets"])


@pytest.mark.heavy
@pytest.mark.parametrize("how", [{}, {"bash_id": "kept"}], ids=["new shell", "kept shell"])
def test_only_files_that_the_question_names_run(workspace: Path, home: Path, client: Pipe, how: dict[str, str]) -> None:
    ran, faults = 0, list[str]()
    if how:
        client.call("bash", command="true", **how)
    for line in LINES if FULL else LINES[::5]:
        for name in FILES:
            write(workspace, name, FINE)
        plant_odd_files(workspace)
        first = said(client.call("bash", command=line, timeout=5000, **how))
        if "menugate approve " not in first:
            # Judged as building or testing, or it could not be approved at all.
            continue
        shown = json.loads(typed(workspace, home, "approvals", "show", find_id(first), "--json").out)
        scope = ["--for-session"] if "session" in shown["scopes"] else []
        assert typed(workspace, home, "approve", find_id(first), *scope).code == 0
        named = {target["path"] for target in shown["targets"]}
        for name in FILES.keys() - named:
            write(workspace, name, EVIL)
        for name in ODD:
            if is_unbound(shown, name):
                with (workspace / name).open("r+") as file:
                    file.write(f"echo {EVIL}\nexit\n")
        # Where nobody can tell which file runs, a call that may have changed one counts.
        client.call("Write", file_path=f"note {len(faults)} {ran} {LINES.index(line)}", content="")
        second = said(client.call("bash", command=line, timeout=5000, **how))
        ran += FINE in second
        if EVIL in second:
            faults.append(f"{line!r} ran something else than {sorted(named)}")
        if how:
            client.call("kill_shell", **how)
            client.call("bash", command="true", **how)
    assert not faults, "\n".join(faults)
    assert ran > (20 if FULL else 4), "hardly anything ran, so hardly anything was tried"


KEPT: list[dict[str, Any]] = [
    {"before": ["cd sub", "cd .."], "line": "cd -; ./run.sh", "then": ["cd evil", "cd .."]},
    {"before": ["pushd sub", "pushd .."], "line": "~1/run.sh", "then": ["popd", "popd", "pushd evil", "pushd .."]},
    {"before": ["pushd sub", "pushd .."], "line": "popd; ./run.sh", "then": ["popd", "popd", "pushd evil", "pushd .."]},
    {"before": ["x=sub", "n=x"], "line": "cd ${!n}; ./run.sh", "then": ["x=evil"]},
    {"before": ["x=sub"], "line": "eval 'cd $x; ./run.sh'", "then": ["x=evil"]},
    {"before": ["x='$y'", 'y="echo fine"'], "line": 'eval "eval \\"$x\\""', "then": ['y="echo evil"']},
    {"before": ["x=sub"], "line": "${x}/run.sh", "then": ["x=evil"]},
    {"before": ["x=sub"], "line": "bash -c 'cd \"$1\"; ./run.sh' _ $x", "then": ["x=evil"]},
    {"before": ["export PYTHONPATH=lib"], "line": "python3.11 t.p", "then": ["export PYTHONPATH=evil"]},
    {"before": ["cd sub"], "line": "./run.sh", "then": ["cd ../evil"]},
]


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row["line"])
def test_no_line_between_changes_what_an_approved_one_runs(
    workspace: Path, home: Path, client: Pipe, row: dict[str, Any]
) -> None:
    for folder, says in (("", FINE), ("sub/", FINE), ("evil/", EVIL)):
        write(workspace, f"{folder}run.sh", says)
    for folder, says in (("lib", FINE), ("evil", EVIL)):
        (workspace / folder).mkdir(exist_ok=True)
        (workspace / folder / "m.py").write_text(f"print('{says}')\n")
    (workspace / "t.p").write_text("import m\n")

    def run(line: str) -> str:
        return said(client.call("bash", command=line, bash_id="one", timeout=5000))

    for line in row["before"]:
        answer = run(line)
        assert "menugate approve " not in answer, answer
    first = run(row["line"])
    assert typed(workspace, home, "approve", find_id(first)).code == 0, first
    for line in row["then"]:
        run(line)
    assert "said: evil" not in (second := run(row["line"])) and "evil\n" not in second, second
