"""What should be reported about a finished run? Read-only checks that always find the same in the same run.

A check is one function. If the operator set one up, a model is one more check, whose words are shown separately. If a
check fails, the report says so and the others still run. No check affects the answer.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import anyio
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.documents import MOST_DOCUMENTS, Document
from mcp_server.model.menus import META_TOOLS
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command, Processes
from mcp_server.model.reports import AdviserOpinion, RunReport
from mcp_server.model.results import Refusal
from mcp_server.model.sessions import Session
from mcp_server.model.text import format_count
from mcp_server.model.todos import KIND, TodoState
from mcp_server.model.tools import Demand, Effect
from mcp_server.model.verification import FAILED
from mcp_server.state import documents, runs, sessions
from mcp_server.state.engine.rows import Row
from mcp_server.state.store import Store

MAX_NAMED = 10
CHECK_SECONDS = 10.0
UNFINISHED = frozenset({"refusal", "question"})
NO_GIT = 128
INTERRUPTED = "a model's review: cancelled before the model answered"
READING = Demand(Effect.READ_LOCAL, Profile.RESTRICTED)


class FinishedRun(Struct, frozen=True):
    """The run as recorded."""

    session: Session
    status: str
    rows: Sequence[Row]
    answer: str = ""
    profile: Profile = Profile.RESTRICTED
    """The person's profile when the run ends."""


class CheckResult(Struct, frozen=True):
    issues: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    suggested: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    opinion: AdviserOpinion | None = None


Check: TypeAlias = Callable[[FinishedRun], Awaitable[CheckResult]]


class RunReview(Struct, frozen=True):
    store: Store
    processes: Callable[[Demand, Profile], Processes]
    """Opens the port to processes, with no more rights than the caller asks for."""
    adviser: Check | None = None
    """Asks a model, if the operator configured one. It has its own time limit."""

    @property
    def checks(self) -> tuple[tuple[str, Check], ...]:
        """The checks with their names, in the order of the report."""
        return (
            ("refused and failed calls", check_failed_calls),
            ("tests", check_last_tests),
            ("todos", build_todo_check(self.store)),
            ("git", build_commit_check(partial(self.processes, READING, READING.profile))),
            ("risks", build_risk_check(self.store)),
        )

    async def build_report(self, run: FinishedRun) -> RunReport:
        session, rows = run.session, run.rows
        results = [await self._run_check(name, check, run) for name, check in self.checks]
        calls = len([row for row in rows if row.kind == "intent" and row.fields.get("tool") not in META_TOOLS])
        refused = len([row for row in rows if row.kind in UNFINISHED])
        findings = sum(len(result.issues) + len(result.missing) for result in results)
        return RunReport(
            run=session.run,
            principal=session.principal,
            session=session.id,
            status=run.status,
            summary=f"Ended as {run.status} after {format_count(calls, 'call')} that ran and {refused} that did not; "
            f"{format_count(findings, 'finding')}.",
            issues=tuple(text for result in results for text in result.issues),
            missing_steps=tuple(text for result in results for text in result.missing),
            suggested_next_actions=tuple(text for result in results for text in result.suggested),
            unchecked=tuple(text for result in results for text in result.unchecked),
        )

    async def add_model_opinion(self, run: FinishedRun, report: RunReport) -> RunReport:
        """Add a model's opinion, if the operator configured one."""
        if self.adviser is None:
            return report
        result = await self.adviser(run)
        return replace(report, unchecked=(*report.unchecked, *result.unchecked), opinion=result.opinion)

    def note_missing_opinion(self, report: RunReport) -> RunReport:
        return replace(report, unchecked=(*report.unchecked, INTERRUPTED))

    async def _run_check(self, name: str, check: Check, run: FinishedRun) -> CheckResult:
        try:
            with anyio.fail_after(CHECK_SECONDS):
                return await check(run)
        except TimeoutError:
            return CheckResult(unchecked=(f"{name}: it took too long",))
        except Refusal as refused:
            return CheckResult(unchecked=(f"{name}: {refused.problem.message}",))


async def check_failed_calls(run: FinishedRun) -> CheckResult:
    """Find tools whose last call was refused or failed."""
    open_calls: dict[str, tuple[str, str]] = {}
    for row in run.rows:
        tool = str(row.fields.get("tool", ""))
        if row.kind in UNFINISHED:
            open_calls[tool] = ("was refused", str(row.fields.get("code", "")))
        elif row.kind == "outcome":
            ending = row.fields.get("ending")
            if ending == "done":
                open_calls.pop(tool, None)
            elif ending in ("problem", "cancelled"):
                open_calls[tool] = ("failed", str(row.fields.get("code", "")))
    lines = [f"`{tool}` {how} ({code}) and never succeeded after that" for tool, (how, code) in open_calls.items()]
    return CheckResult(issues=limit_lines(lines), suggested=("Check the calls that did not succeed.",) if lines else ())


async def check_last_tests(run: FinishedRun) -> CheckResult:
    """Find a failed last test run. A run without tests gives no finding."""
    outcomes = [str(row.fields.get("tested")) for row in run.rows if row.fields.get("tested")]
    if not outcomes or outcomes[-1] != FAILED:
        return CheckResult()
    return CheckResult(issues=("the last test run failed",), suggested=("Fix what fails and run the tests again.",))


def build_risk_check(store: Store) -> Check:
    """Repeat the risks that the agent named in its thoughts."""

    async def check(run: FinishedRun) -> CheckResult:
        thoughts = await store.read(partial(runs.load_thoughts, session=run.session.id, run=run.session.run))
        risks = dict.fromkeys(thought.known_risks for thought in thoughts if thought.known_risks)
        return CheckResult(suggested=limit_lines([f"Check a risk that the agent named: {risk}" for risk in risks]))

    return check


def build_commit_check(processes: Callable[[], Processes]) -> Check:
    """Find uncommitted changes. Everything that the repository could make git execute is turned off."""

    async def check(_run: FinishedRun) -> CheckResult:
        port = processes()
        program = port.find_program("git")
        if program is None:
            return CheckResult(unchecked=("uncommitted changes: git is not installed",))
        safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
        argv = (program, *safe, "status", "--porcelain=v1", "-z", "--untracked-files=normal")
        result = await port.run(Command(argv, seconds=CHECK_SECONDS / 2, read_only=True))
        if result.code == NO_GIT:
            return CheckResult()
        if result.code != 0 or result.timed_out:
            return CheckResult(unchecked=("uncommitted changes: git failed or took too long",))
        entries = result.out.decode("utf-8", "replace").split("\0")
        paths = [entry[3:] for entry in entries if len(entry) > 3 and entry[2] == " "]
        if not paths:
            return CheckResult()
        shown = ", ".join(f"`{path}`" for path in paths[:MAX_NAMED])
        more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
        return CheckResult(missing=(f"not committed: {shown}{more}",), suggested=("Commit what you want to keep.",))

    return check


def build_todo_check(store: Store) -> Check:
    """Find the todos that are not verified."""

    async def check(run: FinishedRun) -> CheckResult:
        places = await store.read(partial(sessions.load_places, id=run.session.id))
        keys = dict.fromkeys([run.session.key, *(place.session.key for place in places)])
        todos = [todo for key in keys for todo in await _load_todos(store, key) if todo.mark != TodoState.VERIFIED]
        lines = [f"still {todo.mark.replace('_', ' ')}: {todo.body.get('content', todo.id)}" for todo in todos]
        return CheckResult(
            missing=limit_lines(lines), suggested=("Continue with the open todos, or drop them.",) if lines else ()
        )

    return check


async def _load_todos(store: Store, place: str) -> Sequence[Document]:
    owner = documents.format_session_owner(place)
    return await store.read(
        partial(documents.load_documents, owner=owner, kind=KIND, mark=None, limit=MOST_DOCUMENTS, offset=0)
    )


def limit_lines(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MAX_NAMED
    return (*lines[:MAX_NAMED], *((f"and {more} more",) if more > 0 else ()))
