"""What should be said about a finished run? Checks that only look, and always find the same in the same run.

A check is one function. If the operator allows it, a model is one more check, whose words stand apart. If a check
cannot do its work, the report says so and the other checks still run. No check affects the answer.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import anyio

from mcp_server.model.documents import MOST_DOCUMENTS, Document
from mcp_server.model.menus import META_TOOLS
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command, Processes
from mcp_server.model.reports import AdviserOpinion, RunReport
from mcp_server.model.results import Refusal
from mcp_server.model.sessions import Session
from mcp_server.model.todos import KIND, TodoState
from mcp_server.model.tools import Demand, Effect
from mcp_server.model.verification import FAILED
from mcp_server.state import documents, runs, sessions
from mcp_server.state.engine.rows import Row
from mcp_server.state.store import Store

MOST_NAMED = 10
PATIENCE = 10.0
"""Seconds that one check may take in all."""
UNFINISHED = frozenset({"refusal", "question"})
NO_GIT = 128
UNHEARD = "a model's review: taken back while it was asked for"
LOOKING = Demand(Effect.READ_LOCAL, Profile.RESTRICTED)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The run as recorded."""

    session: Session
    status: str
    rows: Sequence[Row]
    answer: str = ""
    profile: Profile = Profile.RESTRICTED
    """The person's profile when the run ends."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    issues: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    suggested: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    opinion: AdviserOpinion | None = None


Check: TypeAlias = Callable[[FinishedRun], Awaitable[CheckResult]]


@dataclass(frozen=True)
class RunReview:
    store: Store
    processes: Callable[[Demand, Profile], Processes]
    """Opens the port to processes, with no more rights than the caller asks for."""
    asking: Check | None = None
    """Asks a model, if the operator configured one. It has a time limit of its own."""

    @property
    def checks(self) -> tuple[tuple[str, Check], ...]:
        """Each check with its name, in the order of their findings."""
        return (
            ("refused and failed calls", check_failed_calls),
            ("tests", check_last_tests),
            ("todos", build_todo_check(self.store)),
            ("git", build_commit_check(partial(self.processes, LOOKING, LOOKING.profile))),
            ("risks", build_risk_check(self.store)),
        )

    async def build_report(self, run: FinishedRun) -> RunReport:
        session, rows = run.session, run.rows
        seen = [await self._run_check(name, check, run) for name, check in self.checks]
        ran = len([row for row in rows if row.kind == "intent" and row.fields.get("tool") not in META_TOOLS])
        not_run = len([row for row in rows if row.kind in UNFINISHED])
        count = sum(len(one.issues) + len(one.missing) for one in seen)
        return RunReport(
            run=session.run,
            principal=session.principal,
            session=session.id,
            status=run.status,
            summary=f"Ended as {run.status} after {ran} calls that ran and {not_run} that did not; {count} findings.",
            issues=tuple(text for one in seen for text in one.issues),
            missing_steps=tuple(text for one in seen for text in one.missing),
            suggested_next_actions=tuple(text for one in seen for text in one.suggested),
            unchecked=tuple(text for one in seen for text in one.unchecked),
        )

    async def add_model_opinion(self, run: FinishedRun, report: RunReport) -> RunReport:
        """Add a model's opinion, if one is configured."""
        if self.asking is None:
            return report
        seen = await self.asking(run)
        return replace(report, unchecked=(*report.unchecked, *seen.unchecked), opinion=seen.opinion)

    def note_missing_opinion(self, report: RunReport) -> RunReport:
        return replace(report, unchecked=(*report.unchecked, UNHEARD))

    async def _run_check(self, name: str, check: Check, run: FinishedRun) -> CheckResult:
        try:
            with anyio.fail_after(PATIENCE):
                return await check(run)
        except TimeoutError:
            return CheckResult(unchecked=(f"{name}: it took too long",))
        except Refusal as refused:
            return CheckResult(unchecked=(f"{name}: {refused.problem.message}",))


async def check_failed_calls(run: FinishedRun) -> CheckResult:
    """Find calls that were refused or failed, if the same tool never succeeded afterwards."""
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
    lines = [f"`{tool}` {how} ({code}), and was not made up for" for tool, (how, code) in open_calls.items()]
    return CheckResult(
        issues=limit_lines(lines), suggested=("Look at the calls that did not go through.",) if lines else ()
    )


async def check_last_tests(run: FinishedRun) -> CheckResult:
    """The last test run decides; none at all is no finding."""
    ran = [str(row.fields.get("tested")) for row in run.rows if row.fields.get("tested")]
    if not ran or ran[-1] != FAILED:
        return CheckResult()
    return CheckResult(issues=("the last test run failed",), suggested=("Run the tests again and mend what fails.",))


def build_risk_check(store: Store) -> Check:
    """Repeat the risks that the agent itself named, if the person wanted it to think."""

    async def check(run: FinishedRun) -> CheckResult:
        kept = await store.read(partial(runs.load_thoughts, session=run.session.id, run=run.session.run))
        named_risks = dict.fromkeys(one.known_risks for one in kept if one.known_risks)
        return CheckResult(
            suggested=limit_lines([f"Look at a risk that was named on the way: {risk}" for risk in named_risks])
        )

    return check


def build_commit_check(processes: Callable[[], Processes]) -> Check:
    """Find changes that git sees and no commit holds. Everything that the repository could make git execute is off."""

    async def check(_run: FinishedRun) -> CheckResult:
        door = processes()
        program = door.find_program("git")
        if program is None:
            return CheckResult(unchecked=("uncommitted changes: git is not at hand",))
        quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
        argv = (program, *quiet, "status", "--porcelain=v1", "-z", "--untracked-files=normal")
        ran = await door.run(Command(argv, seconds=PATIENCE / 2, read_only=True))
        if ran.code == NO_GIT:
            return CheckResult()
        if ran.code != 0 or ran.timed_out:
            return CheckResult(unchecked=("uncommitted changes: git did not say",))
        paths = [
            part[3:] for part in ran.out.decode("utf-8", "replace").split("\0") if len(part) > 3 and part[2] == " "
        ]
        if not paths:
            return CheckResult()
        shown = ", ".join(f"`{path}`" for path in paths[:MOST_NAMED])
        more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
        return CheckResult(missing=(f"not committed: {shown}{more}",), suggested=("Commit what is meant to stay.",))

    return check


def build_todo_check(store: Store) -> Check:
    """Find what the agent set out to do and nobody has verified."""

    async def check(run: FinishedRun) -> CheckResult:
        places = await store.read(partial(sessions.load_places, id=run.session.id))
        keys = dict.fromkeys([run.session.key, *(kept.session.key for kept in places)])
        left = [one for key in keys for one in await _load_todos(store, key) if one.mark != TodoState.VERIFIED]
        lines = [f"still {one.mark.replace('_', ' ')}: {one.body.get('content', one.id)}" for one in left]
        return CheckResult(
            missing=limit_lines(lines), suggested=("Go on with the open todos, or drop them.",) if lines else ()
        )

    return check


async def _load_todos(store: Store, place: str) -> Sequence[Document]:
    owner = documents.format_session_owner(place)
    return await store.read(
        partial(documents.load_documents, owner=owner, kind=KIND, mark=None, limit=MOST_DOCUMENTS, offset=0)
    )


def limit_lines(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MOST_NAMED
    return (*lines[:MOST_NAMED], *((f"and {more} more",) if more > 0 else ()))
