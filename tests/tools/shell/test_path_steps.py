"""Does a line that makes only new paths run unasked, and no line that loses something?"""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_server.guards.jail import Jail
from mcp_server.guards.path_steps import ease_demand, find_obstacle
from mcp_server.model.tools import Demand
from tests.clients.pipe import pipe
from tests.clients.tuned import tuned
from tests.clients.typed import typed
from tests.sizes import scale
from tests.yaml_text import load_yaml
from tools.shell.classify import find_line_steps
from tools.shell.definitions import BASH

ERAS = ("legacy", "2026-07-28")
TABLE: dict[str, Any] = load_yaml((Path(__file__).parents[2] / "tables" / "path_steps.yaml").read_text())
FILES = (
    *("a.py", "old.py", "over.py", "src/x.py", "src/y.py", "sub/k", "lib/x.py", ".git/HEAD", ".env"),
    *("nested/.vscode/settings.json", "secret/deep/.env", ".venv/lib/a.py", ".venv/bin/cp"),
    *("dashed/-x.py", "dashed/b=a", "dashed/@args", "dashed/--deep/x"),
)


@pytest.fixture
def furnished(workspace: Path) -> Path:
    for name in FILES:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (workspace / "link").symlink_to("sub")
    (workspace / "dangling").symlink_to("nothing")
    os.mkfifo(workspace / "pipe")
    return workspace


def judge(jail: Jail, line: str, folder: str = ".") -> Demand:
    return ease_demand(BASH.get_demand({"command": line, "exec_dir": folder}), jail)


@pytest.mark.parametrize("line", TABLE["runs"])
def test_a_line_that_makes_only_new_paths_needs_nobody(furnished: Path, line: str) -> None:
    assert judge(Jail(furnished), line).confirm is None


@pytest.mark.parametrize(("line", "obstacle"), TABLE["asks"].items())
def test_the_question_says_what_stands_against_the_line(furnished: Path, line: str, obstacle: str) -> None:
    strict = BASH.get_demand({"command": line})
    said = judge(Jail(furnished), line).confirm
    assert strict.confirm
    assert said == (f"{strict.confirm}, and {obstacle}" if obstacle else strict.confirm)
    assert bool(strict.steps) is bool(obstacle)


def test_the_folder_where_a_line_starts_counts(furnished: Path) -> None:
    jail = Jail(furnished)
    assert judge(jail, "mv x.py z.py", "src").confirm is None
    for folder in ("link", "nowhere", "..", "/etc"):
        assert judge(jail, "mv x.py z.py", folder).confirm, folder


def test_no_shell_that_stays_open_is_judged_by_what_is_there() -> None:
    for how in ({"bash_id": "x"}, {"shell_id": "x"}, {"run_in_background": True}):
        assert BASH.get_demand({"command": "cp a.py b.py", **how}).steps == ()


def test_a_pattern_needs_the_person_while_something_else_runs(furnished: Path) -> None:
    steps = find_line_steps("pytest *.py", ".")
    assert find_obstacle(Jail(furnished), steps) == ""
    assert "`npm start`, which runs meanwhile" in find_obstacle(Jail(furnished), steps, ("npm start",))
    assert find_obstacle(Jail(furnished), find_line_steps("cp a.py b.py", "."), ("npm start",)) == ""


def test_a_folder_with_too_much_in_it_is_not_looked_through(furnished: Path) -> None:
    for number in range(2_001):
        (furnished / "src" / f"f{number}").touch()
    assert "more than 2,000 files" in str(judge(Jail(furnished), "cp -r src copy").confirm)
    assert "fits more than 500 names" in str(judge(Jail(furnished), "mv src/* sub/").confirm)


THERE = st.sampled_from(["a", "b", "c", "d", "d/a", "d/b", "d/../a", "d/", "e", "e/a", "e/.", ".", "l", "l/a"])
NEW = st.sampled_from(["n", "o", "n/a", "n/b", "d/n", "e/c", "N", "n/", "/tmp/x"])
NAMES = st.one_of(THERE, NEW, NEW)
PROGRAMS = st.sampled_from(["cp", "mv", "mv", "ln -s"])
OPTIONS = st.lists(st.sampled_from(["-n", "-f", "-v", "-T"]), max_size=1).map(" ".join)
SOURCES = st.lists(st.one_of(THERE, THERE, NEW, st.sampled_from(["*", "d/*", "?"])), min_size=1, max_size=2)
ONE = st.one_of(
    st.builds("{} {} {} {}".format, PROGRAMS, OPTIONS, SOURCES.map(" ".join), st.one_of(NEW, NEW, THERE)),
    st.builds("cp -r {} {}".format, THERE, NEW),
    st.builds("mkdir -p {}".format, NEW),
    st.builds("mkdir {}".format, NEW),
    st.builds("touch {}".format, NAMES),
    st.builds("cd {}".format, st.sampled_from(["d", "e", "n", "n/.", "l", "/tmp"])),
    # Redirections overwrite unasked, as `Write` does, so these write to names that nothing moves to.
    st.builds("echo new > {}".format, st.sampled_from(["q", "r", "e/q"])),
)
JOINS = st.sampled_from([" && ", " ; ", " || ", " | "])
LINES = st.one_of(
    ONE, st.builds("{}{}{}".format, ONE, JOINS, ONE), st.builds("{}{}{}{}{}".format, ONE, JOINS, ONE, JOINS, ONE)
)


def furnish_again(root: Path) -> None:
    subprocess.run(["rm", "-rf", *root.iterdir()], check=True)
    for name in ("d", "e"):
        (root / name).mkdir()
    for number, name in enumerate(("a", "b", "d/a", "d/c", "e/a")):
        (root / name).write_text(f"content {number}")
    (root / "l").symlink_to("e")


def list_contents(root: Path) -> Counter[str]:
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    return Counter(path.read_text() for path in files if path.read_text().startswith("content"))


@pytest.mark.heavy
def test_no_line_that_needs_nobody_loses_a_file(workspace: Path) -> None:
    jail, passed = Jail(workspace), Counter[bool]()

    @settings(
        max_examples=scale(6_000, least=200),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        derandomize=True,
        database=None,
    )
    @given(LINES)
    def check(line: str) -> None:
        furnish_again(workspace)
        before = list_contents(workspace)
        steps = find_line_steps(line, ".")
        runs = bool(steps) and not find_obstacle(jail, steps)
        passed[runs] += 1
        if not runs or "/tmp/" in line:
            return
        subprocess.run(["bash", "-c", line], cwd=workspace, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        after = list_contents(workspace)
        assert not before - after, line

    check()
    assert passed[True] * 20 > passed[False], passed


@pytest.mark.parametrize("era", ERAS)
def test_a_real_line_runs_unasked_and_every_door_says_so(furnished: Path, home: Path, era: str) -> None:
    with pipe(furnished, home, "--profile", "normal", "--mode", "swe") as one:
        one.hello("opencode", era)
        for line in ("cp a.py sub/new.py", "mv old.py sub/ && mkdir n && mv sub/old.py n/"):
            said = typed(
                furnished, home, "explain", "bash", json.dumps({"command": line}), "--json", "--profile", "normal"
            )
            assert json.loads(said.out)["verdict"] == "allow", said
            answer = one.call("bash", command=line)
            assert not answer["isError"], answer
        assert (furnished / "sub" / "new.py").is_file()
        assert (furnished / "n" / "old.py").is_file()
        again = one.call("bash", command="cp a.py sub/new.py")["content"][0]["text"]
        assert "APPROVAL_REQUIRED" in again
        assert "`sub/new.py` is there already" in again
        said = typed(
            furnished, home, "explain", "bash", '{"command": "cp a.py sub/new.py"}', "--json", "--profile", "normal"
        )
        assert json.loads(said.out)["verdict"] == "ask"
        assert "`sub/new.py` is there already" in json.loads(said.out)["reason"]


@pytest.mark.parametrize("era", ERAS)
def test_a_path_that_somebody_else_makes_meanwhile_is_not_overwritten(furnished: Path, home: Path, era: str) -> None:
    target = furnished / "b.py"
    with pipe(furnished, home, "--profile", "normal", "--mode", "swe", run=tuned(crossing=target)) as one:
        one.hello("opencode", era)
        answer = one.call("bash", command="cp a.py b.py")["content"][0]["text"]
    assert answer.startswith("Error STALE: What is there has changed since this call was judged"), answer
    assert "`b.py` is there already. Nothing ran" in answer
    assert target.read_text() == "somebody else's"
