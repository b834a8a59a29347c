"""How is one test run by its name, and how did it end? The name stays a name, whatever characters it has."""

import re
import shlex
from enum import StrEnum

from anyio import to_thread
from msgspec import Struct

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.results import Done, Ending, Problem, Refusal

DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
"""`tests.test_a.Case.test_b`, as unittest names a test; every other name is pytest's."""
PYTHON, VENV = "python3", ".venv/bin"
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE=1 PYTHONPYCACHEPREFIX=/dev/null"
"""Python would run old bytecode of a file that changed within the same second and kept its length."""


def find_name_fault(test: str) -> str:
    """Say why this cannot be a test's name; empty if it can."""
    if test[:1] in ("-", "@"):
        return f"takes a test's name, and `{test[:40]}` would be read as an option"
    if any(ord(char) < 32 or ord(char) == 127 for char in test):
        return "takes a test's name on one line, without control characters"
    path = test.partition("::")[0]
    if path.startswith("/") or ".." in path.split("/"):
        return "takes a test of this workspace, by its path relative to the workspace"
    return ""


def is_unittest_name(test: str) -> bool:
    return DOTTED.fullmatch(test) is not None and not test.endswith(".py")


def build_test_command(test: str, python: str = PYTHON) -> str:
    runner = "unittest" if is_unittest_name(test) else "pytest -q"
    return f"{python} -m {runner} {shlex.quote(test)}"


async def find_python(files: Files) -> str:
    """Return the workspace's own Python, if it has one: its tests need what is installed there."""
    try:
        entries = await to_thread.run_sync(files.list_folder, VENV)
    except Refusal:
        return PYTHON
    return next((entry.path for entry in entries if entry.path == f"{VENV}/python"), PYTHON)


class SingleTestOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    """There is no such test."""
    UNCLEAR = "unclear"
    """It was skipped, stopped, or its runner is not installed."""


class SingleTestRun(Struct, frozen=True):
    outcome: SingleTestOutcome
    text: str
    refusal: Problem | None = None
    """Why it was not run at all."""


async def run_line(ctx: Context, line: str, seconds: int, folder: str = "") -> Ending:
    """Run a line with `bash`, through the gate, and kill it if it does not end in time."""
    exec_dir = {"exec_dir": folder} if folder else {}
    ending = await ctx.call_tool("bash", {"command": line, "timeout": seconds * 1000, **exec_dir})
    if isinstance(ending, Done) and get_exit_code(ending) is None:
        await ctx.call_tool("kill_shell", {"bash_id": ending.meta.get("bash_id", "")})
    return ending


def get_exit_code(ending: Ending) -> int | None:
    """Return the exit code of a `bash` call; None if the command did not end, or did not run."""
    match ending:
        case Done():
            code = {**(ending.data or {}), **ending.meta}.get("exit_code")
        case Problem():
            code = (ending.data or {}).get("exit_code")
        case _:
            code = None
    return code if isinstance(code, int) else None


def parse_test_run(test: str, ending: Ending) -> SingleTestRun:
    code, text = get_exit_code(ending), ending.text
    if isinstance(ending, Done) and ending.data and isinstance(ending.data.get("output"), str):
        text = ending.data["output"]
    if code is None:
        return SingleTestRun(SingleTestOutcome.UNCLEAR, text, ending if isinstance(ending, Problem) else None)
    if is_unittest_name(test):
        return SingleTestRun(_outcome_from_unittest(test, code, text), text)
    return SingleTestRun(_outcome_from_pytest(code, text), text)


def _outcome_from_pytest(code: int, text: str) -> SingleTestOutcome:
    if "No module named pytest" in text:
        return SingleTestOutcome.UNCLEAR
    if code == 0:
        passed = re.search(r"\b\d+ (passed|xfailed|xpassed)\b", text)
        return SingleTestOutcome.PASSED if passed else SingleTestOutcome.UNCLEAR
    # If its file cannot be imported, the test is broken rather than missing.
    if code == 1 or "ERROR collecting" in text or "ImportError while" in text:
        return SingleTestOutcome.FAILED
    return SingleTestOutcome.MISSING if code in (4, 5) else SingleTestOutcome.UNCLEAR


def _outcome_from_unittest(test: str, code: int, text: str) -> SingleTestOutcome:
    if "Failed to import test module" in text and f"No module named '{test.partition('.')[0]}" not in text:
        return SingleTestOutcome.FAILED
    if "_FailedTest" in text or code == 5 or "Ran 0 tests" in text:
        return SingleTestOutcome.MISSING
    if code == 0:
        return SingleTestOutcome.UNCLEAR if re.search(r"OK \(skipped=", text) else SingleTestOutcome.PASSED
    return SingleTestOutcome.FAILED if code == 1 else SingleTestOutcome.UNCLEAR
