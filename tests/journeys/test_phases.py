"""Does a run that chose phases go through them as it may, with a way on and a way back from everywhere?"""

import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import Served, served
from tests.clients.shipped import TOOLS
from tests.journeys.test_todos import code, opened, said

META = ["menu_list", "menu_enter", "menu_exit", "complete", "think", "message_user"]
WAYS = ["TodoCreate", "TodoRead", "TodoStart", "TodoClaim", "TodoVerify", "advance_phase", "return_to_fix_phase"]
OWN = {
    "localization": ["Read", "grep", "glob", "lsp_tool"],
    "understanding": ["Read", "grep", "glob", "lsp_tool"],
    "fix": ["Read", "Edit"],
    "regression_check": ["Read", "bash"],
    "target_fix_verification": ["bash"],
}
FOUND = {"suspect_files": ["calc.py"], "hypothesis": "the sign is wrong"}
BROKEN, WHOLE = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = """import unittest
from calc import add


class Adds(unittest.TestCase):
    def test_two(self):
        self.assertEqual(add(1, 1), 2)

    def test_nothing(self):
        self.assertEqual(add(0, 0), 0)

    def test_now_and_then(self):
        with open("seen/count", "a+") as file:
            file.write("x")
            file.seek(0)
            self.assertEqual(len(file.read()) % 2, 0)

    @unittest.skip("not today")
    def test_later(self):
        pass
"""


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "calc.py").write_text(BROKEN)
    (workspace / "test_calc.py").write_text(TEST)
    (workspace / "seen").mkdir()
    (workspace / "seen" / "count").write_text("")
    return workspace


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def go(one: Pipe, **said_of: Any) -> dict[str, Any]:
    answer = one.call("advance_phase", **said_of)
    assert not answer["isError"], said(answer)
    return answer["structuredContent"]


@pytest.mark.parametrize("era", ERAS)
def test_through_all_of_them_and_out(project: Path, home: Path, era: str) -> None:
    with pipe(project, home) as one:
        opened(one, era)
        free = one.names()
        assert go(one)["phase"] == "localization"
        for phase, own in OWN.items():
            expected = {*META, *WAYS, "get_phase_status", *own} & set(free)
            assert set(one.names()) == expected, phase
            assert one.names() == [name for name in free if name in expected], "in the order it always has"
            assert one.call("get_phase_status")["structuredContent"]["phase"] == phase
            hidden = next(name for name in ("Write", "git_add") if name in free)
            assert code(one.call(hidden)) == "WRONG_PHASE"
            match phase:
                case "localization":
                    assert code(one.call("advance_phase", suspect_files=["calc.py"])) == "WRONG_STATE"
                    status = one.call("get_phase_status")["structuredContent"]
                    assert (status["missing"], status["outputs"]) == (["hypothesis"], {"suspect_files": ["calc.py"]})
                    go(one, hypothesis="the sign is wrong")
                case "understanding":
                    go(one, root_cause="a minus")
                case "fix":
                    one.call("Read", file_path="calc.py")
                    assert not one.call("Edit", file_path="calc.py", old_string="a - b", new_string="a + b")["isError"]
                    go(one, modified_files=["calc.py"])
                case "regression_check":
                    assert code(one.call("advance_phase", pass_to_pass_status="all_passed")) == "NO_EVIDENCE"
                    one.call("bash", command="python3 -m unittest test_calc.Adds.test_nothing || true")
                    assert code(one.call("advance_phase", pass_to_pass_status="all_passed")) == "NO_EVIDENCE"
                    one.call("bash", command="python3 -m unittest test_calc.Adds.test_nothing")
                    go(one, pass_to_pass_status="all_passed")
                case _:
                    one.call("bash", command="python3 -m unittest test_calc.Adds.test_two")
                    assert code(one.call("advance_phase", fail_to_pass_status="1_failed")) == "WRONG_STATE"
                    assert go(one, fail_to_pass_status="all_passed")["phase"] is None
        assert one.names() == free


def test_who_hears_of_a_changed_list_hears_of_every_phase(project: Path, home: Path) -> None:
    with pipe(project, home) as one:
        opened(one)
        for tool, arguments in [
            ("advance_phase", {}),
            ("advance_phase", FOUND),
            ("advance_phase", {"root_cause": "a minus"}),
            ("complete", {"final_answer": "that is all", "status": "partial"}),
        ]:
            one.names()
            _, before = one.until(one.send("tools/call", {"name": tool, "arguments": arguments}))
            heard = [message["method"] for message in before]
            # Localization and understanding show the same tools here, and what is the same is not announced.
            assert heard == (["notifications/tools/list_changed"] if arguments is not FOUND else [])
        assert one.call("get_phase_status")["structuredContent"]["phase"] is None


def at(one: Pipe, phase: str) -> None:
    steps = {
        "localization": {},
        "understanding": FOUND,
        "fix": {"root_cause": "a minus"},
        "regression_check": {"modified_files": ["calc.py"]},
        "target_fix_verification": {"pass_to_pass_status": "2_failed"},
    }
    for step, words in steps.items():
        go(one, **words)
        if step == phase:
            return


@pytest.mark.parametrize("phase", ["regression_check", "target_fix_verification"])
def test_the_way_back_works_and_begins_anew(project: Path, home: Path, phase: str) -> None:
    with pipe(project, home) as one:
        opened(one)
        assert code(one.call("return_to_fix_phase", reason="none yet")) == "WRONG_STATE"
        go(one)
        assert code(one.call("return_to_fix_phase", reason="it comes later")) == "WRONG_STATE"
        go(one, **FOUND)
        go(one, root_cause="a minus")
        assert code(one.call("return_to_fix_phase", reason="we are there")) == "WRONG_STATE"
        one.call("Read", file_path="calc.py")
        go(one, modified_files=["calc.py"])
        one.call("bash", command="python3 -m unittest test_calc.Adds.test_nothing")
        if phase != "regression_check":
            go(one, pass_to_pass_status="all_passed")
        back = one.call("return_to_fix_phase", reason="one fails")["structuredContent"]
        assert (back["phase"], back["calls_left"]) == ("fix", 15)
        assert back["returns"] == ["one fails"]
        assert not {"regression_check", "target_fix_verification"} & set(back["spent"])
        one.call("Read", file_path="calc.py")
        one.call("Edit", file_path="calc.py", old_string="a - b", new_string="a + b")
        assert go(one)["phase"] == "regression_check"
        assert code(one.call("advance_phase", pass_to_pass_status="all_passed")) == "NO_EVIDENCE", "changed since"


def test_refused_calls_cost_nothing_and_a_spent_budget_leaves_every_way_open(project: Path, home: Path) -> None:
    with pipe(project, home) as one:
        opened(one)
        at(one, "fix")
        for tool, arguments in (
            ("bash", {"command": "ls"}),
            ("Edit", {"file_path": 1}),
            ("Write", {"file_path": "x", "content": "y"}),
        ):
            assert one.call(tool, **arguments)["isError"]
        for _ in range(5):
            one.call("think", content="hm")
            one.call("TodoRead")
        assert one.call("get_phase_status")["structuredContent"]["calls_left"] == 15
        for number in range(15):
            answer = one.call("Read", file_path="calc.py" if number % 2 else "nowhere.py")
            assert answer["isError"] is (number % 2 == 0), "one that ran and failed is counted"
        spent = one.call("Read", file_path="calc.py")
        assert code(spent) == "PHASE_SPENT"
        assert "advance_phase" in said(spent)
        assert go(one, modified_files=["calc.py"])["phase"] == "regression_check"
        back = one.call("return_to_fix_phase", reason="not enough")["structuredContent"]
        assert back["calls_left"] == 15
        assert not one.call("Read", file_path="calc.py")["isError"]


def test_calls_made_at_once_do_not_share_the_last_place(project: Path, home: Path) -> None:
    with pipe(project, home) as one:
        opened(one)
        at(one, "target_fix_verification")
        sent = [one.send("tools/call", {"name": "bash", "arguments": {"command": f"echo {turn}"}}) for turn in range(9)]
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(sent):
            message = one.message()
            if "result" in message:
                answers[message["id"]] = message["result"]
        ran = [answer for answer in answers.values() if not answer["isError"]]
        assert len(ran) == 5
        assert {code(answer) for answer in answers.values()} == {None, "PHASE_SPENT"}


def test_a_restart_changes_neither_the_phase_nor_what_it_spent(project: Path, home: Path) -> None:
    with pipe(project, home) as one:
        menu = opened(one)
        at(one, "regression_check")
        one.call("bash", command="python3 -m unittest test_calc.Adds.test_nothing")
        one.process.kill()
    with pipe(project, home) as again:
        again.hello()
        status = again.call("menu_read", tool="get_phase_status", menu=menu)["structuredContent"]
        assert (status["phase"], status["calls_left"], status["tests"]["passed"]) == ("regression_check", 9, True)
        assert code(again.call("menu_call", tool="Write", menu=menu, arguments={})) == "WRONG_PHASE"
        on = again.call("menu_call", tool="advance_phase", menu=menu, arguments={"pass_to_pass_status": "all_passed"})
        assert on["structuredContent"]["phase"] == "target_fix_verification"


def test_other_modes_and_other_sessions_are_as_they_always_are(project: Path, home: Path) -> None:
    with pipe(project, home) as one, pipe(project, home) as other:
        opened(one)
        opened(other)
        at(one, "localization")
        one.call("menu_enter", mode="data")
        assert not one.call("fs_write_file", path="new.txt", content="x")["isError"]
        assert not other.call("Write", file_path="newer.txt", content="x")["isError"]
        one.call("menu_enter", mode="swe")
        assert code(one.call("Write", file_path="newest.txt", content="x")) == "WRONG_PHASE"


def test_a_criterion_runs_no_more_than_the_phase_does(project: Path, home: Path) -> None:
    criteria = [
        {"type": "command_exit_zero", "params": {"command": "touch canary"}},
        {"type": "file_exists", "params": {"path": "calc.py"}},
    ]
    with pipe(project, home) as one:
        opened(one)
        at(one, "fix")
        id = one.call("TodoCreate", content="x", acceptance_criteria=criteria)["structuredContent"]["id"]
        one.call("TodoStart", id=id)
        one.call("TodoClaim", id=id, explanation="It is all done, one can see it.")
        runs, looks = one.call("TodoVerify", id=id)["structuredContent"]["results"]
        assert (runs["verdict"], runs["code"], runs["layer"]) == ("unclear", "WRONG_PHASE", "stage")
        assert looks["verdict"] == "passed"
        assert one.call("get_phase_status")["structuredContent"]["calls_left"] == 15
    assert not (project / "canary").exists()


# A failing test, now and at the last commit.


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("failing")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    (work / "calc.py").write_text(BROKEN)
    (work / "test_calc.py").write_text(TEST)
    (work / "seen").mkdir()
    (work / "seen" / "count").write_text("")
    git(work, "init", "-q")
    (work / ".gitignore").write_text(".menugate\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    with served(work, home, "--profile", "trusted") as one:
        yield one


def look(here: Served, name: str, **more: Any) -> dict[str, Any]:
    one = Speaker(here).hello()
    one.call("menu_enter", mode="swe")
    return one.call("analyze_test_failure", test_name=name, **more)


def state_of(here: Served) -> tuple[str, ...]:
    work = here.workspace
    return (
        git(work, "status", "--porcelain", "--", ".", ":(exclude)__pycache__"),
        git(work, "worktree", "list"),
        git(work, "stash", "list"),
        git(work, "rev-parse", "HEAD"),
        " ".join(sorted(path.name for path in work.iterdir() if path.name != "__pycache__")),
    )


def changed_unseen_by_python(work: Path, now: str) -> None:
    """Compiled, and then changed within the same second to the same length: Python takes the old one for up to date."""
    calc = work / "calc.py"
    before = calc.stat().st_mtime_ns
    shutil.rmtree(work / "__pycache__", ignore_errors=True)
    subprocess.run(["python3", "-c", "import calc"], cwd=work, check=True, env={"PATH": os.environ["PATH"]})
    calc.write_text(now)
    os.utime(calc, ns=(before, before))


@pytest.mark.parametrize(
    ("now", "before", "test", "verdict"),
    [
        (BROKEN, BROKEN, "test_two", "failed_before"),
        (BROKEN, WHOLE, "test_two", "new_failure"),
        (WHOLE, BROKEN, "test_two", "mended"),
        (WHOLE, WHOLE, "test_two", "passes"),
        (BROKEN, WHOLE, "test_now_and_then", "flaky"),
        (BROKEN, WHOLE, "test_no_such", "cannot_tell"),
        (BROKEN, WHOLE, "test_later", "cannot_tell"),
        (BROKEN, "", "test_two", "failed_before"),
    ],
)
def test_what_a_failure_is(here: Served, now: str, before: str, test: str, verdict: str) -> None:
    work = here.workspace
    (work / "calc.py").write_text(before)
    (work / "seen" / "count").write_text("")
    git(work, "commit", "-qam", "before", "--allow-empty")
    changed_unseen_by_python(work, now)
    (work / "mine.txt").write_text("not committed")
    stood = state_of(here)
    found = look(here, f"test_calc.Adds.{test}", compare_baseline=True)
    assert found["structuredContent"]["verdict"] == verdict, said(found)
    git(work, "checkout", "-q", "seen")
    assert state_of(here) == stood
    assert (work / "calc.py").read_text() == now


def test_without_a_baseline_it_says_that_it_did_not_look(here: Served) -> None:
    (here.workspace / "calc.py").write_text(BROKEN)
    found = look(here, "test_calc.Adds.test_two")
    assert found["structuredContent"] == {"verdict": "fails", "runs": ["failed", "failed"], "baseline": None}
    assert "AssertionError" in said(found)


@pytest.mark.parametrize(
    "name",
    ["test_calc; touch canary", "$(touch canary)", "`touch canary`", "x' ; touch canary ; '", "a|touch canary", "a&&b"],
)
def test_a_name_stays_a_name(here: Served, name: str) -> None:
    assert look(here, name)["structuredContent"]["verdict"] == "cannot_tell"
    assert not (here.workspace / "canary").exists()


@pytest.mark.parametrize(
    "name", ["-h", "--pdb", "@file", "a\ntouch canary", "/etc/x.py::t", "../x.py", "a/../../x.py::t"]
)
def test_a_name_that_is_none_is_refused_before_anything_runs(here: Served, name: str) -> None:
    assert code(look(here, name)) == "INVALID_ARGUMENTS"
    assert not (here.workspace / "canary").exists()


def test_it_needs_the_profile_that_tests_need(project: Path, home: Path) -> None:
    with pipe(project, home, "--profile", "normal") as one:
        opened(one)
        assert "analyze_test_failure" not in one.names()
        assert code(one.call("analyze_test_failure", test_name="test_calc.Adds.test_two")) == "PROFILE_TOO_LOW"
    assert "analyze_test_failure" in TOOLS
    assert MODERN in ERAS
