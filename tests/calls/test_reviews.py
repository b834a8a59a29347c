"""What is found about a run that is over? By rows of a ledger, and by git where it is at hand."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.calls.reviews import (
    MAX_NAMED,
    CheckResult,
    FinishedRun,
    build_commit_check,
    build_todo_check,
    check_failed_calls,
    check_last_tests,
)
from mcp_server.model.documents import Document, DocumentCause
from mcp_server.model.posture import Profile
from mcp_server.model.processes import ChildProcess, Command, CommandResult, OutputOverflow
from mcp_server.model.sessions import Session
from mcp_server.model.todos import KIND, Todo, TodoState
from mcp_server.state import documents
from mcp_server.state.engine.rows import Row
from tests.state.parts import Hands, Place

pytestmark = pytest.mark.anyio
SESSION = Session("s1", "me", run="r1")


def run(*rows: dict[str, Any]) -> FinishedRun:
    return FinishedRun(SESSION, "success", [Row(number, "", "", fields) for number, fields in enumerate(rows, 1)])


def ran(tool: str, code: str = "", tested: str = "") -> dict[str, Any]:
    ending = "problem" if code else "done"
    return {"kind": "outcome", "tool": tool, "ending": ending, "code": code, "tested": tested}


def refused(tool: str, code: str) -> dict[str, Any]:
    return {"kind": "refusal", "tool": tool, "code": code}


async def test_what_went_through_in_the_end_is_no_issue() -> None:
    rows = [
        *(refused("Edit", "WRONG_MODE"), ran("Read", "NOT_FOUND"), ran("Read"), ran("Edit")),
        *(ran("Write"), ran("Write", "STALE"), refused("fs_delete", "APPROVAL_DENIED")),
    ]
    seen = await check_failed_calls(run(*rows))
    assert seen.issues == (
        "`Write` failed (STALE) and never succeeded after that",
        "`fs_delete` was refused (APPROVAL_DENIED) and never succeeded after that",
    )
    assert await check_failed_calls(run(ran("Read"))) == CheckResult()


async def test_many_issues_are_counted() -> None:
    seen = await check_failed_calls(run(*(ran(f"tool{number}", "TIMEOUT") for number in range(MAX_NAMED + 3))))
    assert len(seen.issues) == MAX_NAMED + 1
    assert seen.issues[-1] == "and 3 more"


@pytest.mark.parametrize(
    ("ends", "issue"),
    [(["failed"], True), (["failed", "passed"], False), (["passed", "failed"], True), ([], False), (["", ""], False)],
)
async def test_the_last_test_run_decides(ends: list[str], issue: bool) -> None:
    seen = await check_last_tests(run(*(ran("bash", tested=end) for end in ends)))
    assert bool(seen.issues) is issue


async def test_open_todos_are_missing_steps(tmp_path: Path) -> None:
    hands = Hands()
    try:
        store = await hands.open(Place(tmp_path))
        for state in TodoState:
            todo = Todo(f"it is {state}", state=state)
            document = Document(KIND, state, todo.body, state)
            writing = documents.DocumentWrite(
                documents.format_session_owner("s1"), document, DocumentCause("created", {})
            )
            await store.write(partial(documents.put_document, write=writing))
        assert (await build_todo_check(store)(run())).missing == (
            "still pending: it is pending",
            "still in progress: it is in_progress",
            "still claimed: it is claimed",
        )
    finally:
        await hands.close()


@dataclass
class Here:
    """A door to processes that starts what it is asked to, in one folder."""

    folder: Path
    program: str | None
    sandbox: str = "none"
    network: bool = False
    profile: Profile = Profile.NORMAL
    fixed: tuple[str, ...] = ()

    def find_program(self, program: str) -> str | None:
        return self.program

    async def run(self, command: Command) -> CommandResult:
        assert command.read_only
        env = {"HOME": str(self.folder.parent), "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        done = await anyio.run_process(command.argv, cwd=self.folder, check=False, env=env)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    async def start(self, command: Command, terminal: bool = False) -> ChildProcess:
        raise AssertionError(f"nothing goes on running: {command}, {terminal}")

    def output(self) -> AsyncIterator[bytes]:
        raise AssertionError

    def open_overflow(self) -> OutputOverflow:
        raise AssertionError


async def test_git_says_what_no_commit_holds(workspace: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed here")

    async def seen(program: str | None = git) -> CheckResult:
        return await build_commit_check(lambda: Here(workspace, program))(run())

    assert await seen() == CheckResult(), "no repository is no finding"
    about = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "all of it")):
        subprocess.run([git, *about, *words], cwd=workspace, check=True, env={"HOME": str(workspace.parent)})
    assert await seen() == CheckResult()
    (workspace / "notes.md").write_text("changed\n")
    (workspace / "new file.md").write_text("new\n")
    found = await seen()
    assert found.missing == ("not committed: `notes.md`, `new file.md`",)
    # Nothing of the repository's own runs when it is looked at.
    hook = workspace / "spy.sh"
    hook.write_text(f"#!/bin/sh\ntouch {workspace}/spied\n")
    hook.chmod(0o755)
    subprocess.run([git, "config", "core.fsmonitor", str(hook)], cwd=workspace, check=True)
    await seen()
    assert not (workspace / "spied").exists()
    assert (await seen(None)).unchecked == ("uncommitted changes: git is not installed",)
