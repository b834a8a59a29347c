"""Can a line that was approved run a file that its question did not name, and that was changed since?"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN
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
    {"before": ["export PYTHONPATH=lib"], "line": "python3.11 -d t.p", "then": ["export PYTHONPATH=evil"]},
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


LOADING: list[dict[str, str]] = [
    {"line": "python3 loads.py; rm -f q", "changes": "helper.py"},
    {"line": "rm -f q; python3 -m D.p.m", "changes": "D/p/__init__.py"},
    {"line": "rm -f q; run-parts D", "changes": "D/x"},
    {"line": "rm -f q; XDG_CONFIG_HOME=cfg python3 loads.py", "changes": "helper.py"},
    {"line": "PYTHONPATH=D python3 fine.py; rm -f q", "changes": "D/sitecustomize.py"},
    {"line": "rm -f q; make -f loads.mk", "changes": "more.mk"},
    {"line": "./loads.sh", "changes": "helper.py"},
]
"""Lines that run a file which they do not name."""
LOADED = {
    "loads.py": "import helper\n",
    "helper.py": 'print("{0}")\n',
    "D/p/__init__.py": 'print("{0}")\n',
    "D/p/m.py": "",
    "D/x": "#!/bin/sh\necho {0}\n",
    "D/sitecustomize.py": 'print("{0}")\n',
    "fine.py": "",
    "loads.mk": "include more.mk\n",
    "more.mk": "all:\n\t@echo {0}\n",
    "loads.sh": "#!/bin/sh\npython3 loads.py\n",
}


@pytest.fixture
def loading(workspace: Path) -> Path:
    for name, text in LOADED.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text.format(FINE))
        (workspace / name).chmod(0o755)
    return workspace


WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "legacy, new shell": ("legacy", {}),
    "legacy, kept shell": ("legacy", {"bash_id": "kept"}),
    "modern, new shell": (MODERN, {}),
}


@pytest.fixture(params=WAYS.values(), ids=list(WAYS))
def way(request: pytest.FixtureRequest, loading: Path, home: Path) -> Generator[tuple[Pipe, dict[str, str]]]:
    era, how = request.param
    with pipe(loading, home, "--profile", "normal", "--mode", "swe") as one:
        one.hello(era=era)
        if how:
            one.call("bash", command="true", **how)
        yield one, how


def approve(workspace: Path, home: Path, answer: str, *scope: str) -> str:
    assert "menugate approve " in answer, answer
    said = typed(workspace, home, "approve", find_id(answer), *scope)
    assert said.code == 0, said
    return said.out


def test_code_that_a_line_loads_does_not_change_after_an_approval(
    loading: Path, home: Path, way: tuple[Pipe, dict[str, str]]
) -> None:
    client, how = way
    for at, row in enumerate(LOADING):
        (loading / row["changes"]).write_text(LOADED[row["changes"]].format(FINE))

        def run(line: str = row["line"]) -> str:
            return said(client.call("bash", command=line, **how))

        approve(loading, home, run())
        # Whoever only reads, and the person, change nothing behind your back.
        client.call("Read", file_path=row["changes"])
        assert typed(loading, home, "call", "Write", json.dumps({"file_path": f"own{at}", "content": ""})).code == 0
        assert "APPROVAL_REQUIRED" not in run(), row
        approve(loading, home, run())
        (loading / row["changes"]).unlink()
        made = {"file_path": row["changes"], "content": LOADED[row["changes"]].format(EVIL)}
        assert not client.call("Write", **made).get("isError")
        (loading / row["changes"]).chmod(0o755)
        again = run()
        assert EVIL not in again and "The user approved this call before, but call " in again, again
        assert "(`Write`) may have changed what it runs" in again, again
        shown = typed(loading, home, "approvals", "show", find_id(again)).out
        assert "You have approved this call before, but call " in " ".join(shown.split()), shown


def test_calls_approved_side_by_side_do_not_end_each_other(loading: Path, home: Path, client: Pipe) -> None:
    lines = ["rm -f q; python3 loads.py", "sh ./loads.sh", "./loads.sh once more"]
    for line in lines:
        approve(loading, home, said(client.call("bash", command=line)))
    assert [line for line in lines if "APPROVAL_REQUIRED" in said(client.call("bash", command=line))] == []


def test_a_call_that_a_session_approval_allows_ends_the_others(loading: Path, home: Path, client: Pipe) -> None:
    approve(loading, home, said(client.call("bash", command="./loads.sh")), "--for-session")
    approve(loading, home, said(client.call("bash", command="./loads.sh once more")))
    assert "APPROVAL_REQUIRED" not in said(client.call("bash", command="./loads.sh"))
    assert "may have changed what it runs" in said(client.call("bash", command="./loads.sh once more"))


def test_an_approval_for_the_session_says_that_loaded_files_may_change(loading: Path, home: Path, client: Pipe) -> None:
    def run() -> str:
        return said(client.call("bash", command="./loads.sh"))

    scope = approve(loading, home, run(), "--for-session")
    assert (
        "while the files that the question names stay the same (files that these load may change), in this session"
        in scope
    )
    client.call("Write", file_path="note", content="")
    assert FINE in run()
    (loading / "loads.sh").write_text("#!/bin/sh\necho said: evil\n")
    assert "APPROVAL_REQUIRED" in run()


def test_what_was_refused_stays_refused_when_something_changes(loading: Path, home: Path, client: Pipe) -> None:
    asked = said(client.call("bash", command="./loads.sh"))
    assert typed(loading, home, "deny", find_id(asked)).code == 0
    client.call("Write", file_path="note", content="")
    assert "APPROVAL_DENIED" in said(client.call("bash", command="./loads.sh"))


BESIDE: list[dict[str, Any]] = [
    {"starts": {"command": "sleep 60; echo 1 > helper.py", "run_in_background": True}},
    {"starts": {"command": "sleep 60; echo 2 > helper.py", "bash_id": "other", "timeout": 1}},
    {"starts": {"command": "(sleep 60; echo 3 > helper.py) & true", "bash_id": "other"}},
]


@pytest.mark.parametrize("row", BESIDE, ids=lambda row: row["starts"]["command"])
def test_a_question_names_what_runs_meanwhile_and_can_be_answered(
    loading: Path, home: Path, client: Pipe, row: dict[str, Any]
) -> None:
    starts = row["starts"]["command"]

    def run() -> str:
        return said(client.call("bash", command="./loads.sh"))

    before = run()
    started = client.call("bash", **row["starts"])
    if "APPROVAL_REQUIRED" in said(started):
        approve(loading, home, said(started))
        started = client.call("bash", **row["starts"])
    approve(loading, home, before)
    asked = run()
    shown = typed(loading, home, "approvals", "show", find_id(asked), "--json").out
    assert json.loads(shown)["runs_meanwhile"] == [starts]
    assert "While this runs" in json.loads(shown)["message"]
    approve(loading, home, asked)
    # It still runs, which is the same fact.
    assert FINE in run()
    approve(loading, home, run())
    client.call("kill_shell", bash_id=started["structuredContent"]["bash_id"])
    assert "has ended, and may have changed what it runs" in run()


def test_a_shell_that_waits_for_its_next_line_does_not_count(loading: Path, home: Path, client: Pipe) -> None:
    client.call("bash", command="true", bash_id="idle")
    asked = said(client.call("bash", command="./loads.sh"))
    shown = typed(loading, home, "approvals", "show", find_id(asked), "--json").out
    assert json.loads(shown)["runs_meanwhile"] == []
