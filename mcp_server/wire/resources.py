"""Which resources can a client read? The reports and summaries of its own runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mcp_server.model.reports import LATEST, REPORT_ADDRESS, format_summary_address
from mcp_server.model.tool_packs import PrincipalResource
from mcp_server.state import runs
from mcp_server.state.store import Store
from mcp_server.state.summaries import build_run_summary, find_known_runs

# A report has an address of its own, at which only the principal of the run can read it.

NO_REPORT = "You have not finished a run yet, so there is no report. `complete` ends a run and writes one."
ABOUT_REPORTS = "What the checks found in a finished run: issues, missing steps, next actions."


def build_report_resources(store: Store, redact: Callable[[str], str]) -> tuple[PrincipalResource, ...]:
    """Build the newest report at the plain address, and every report below it under the name of its run."""

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        report = await store.read(partial(runs.find_report, run=holes.get("run"), principal=principal))
        if report is None:
            return None if "run" in holes else NO_REPORT
        return redact(report.format_text())

    return (
        PrincipalResource(REPORT_ADDRESS, "report", f"The newest report. {ABOUT_REPORTS}", "text/markdown", read),
        PrincipalResource(REPORT_ADDRESS + "/{run}", "report of a run", ABOUT_REPORTS, "text/markdown", read),
    )


# A summary has an address with the run in it, at which only the principal of the run can read it.

MARKDOWN = "text/markdown"
NO_SUMMARY = "Nothing is recorded for you yet, so there is no summary. Your first call starts one."
ABOUT_SUMMARIES = "Goals, decisions, current plan, open issues and important outputs, from the record; no reasoning."


def build_summary_resources(store: Store) -> tuple[PrincipalResource, ...]:
    async def list_known_runs(principal: str) -> Sequence[str]:
        # Wait for the writer: a reader expects a call that just ended to be in the ledger.
        await store.write(lambda _tx: None)
        return await store.read(partial(find_known_runs, principal=principal))

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        runs = await list_known_runs(principal)
        run = holes.get("run", LATEST)
        chosen = next(iter(runs), None) if run == LATEST else run
        summary = await store.read(partial(build_run_summary, run=chosen)) if chosen is not None else None
        if summary is not None and summary.principal == principal:
            return summary.text
        return NO_SUMMARY if run == LATEST else None

    async def complete_run(principal: str, _hole: str, typed: str) -> Sequence[str]:
        return [run for run in (LATEST, *await list_known_runs(principal)) if run.startswith(typed)]

    return (
        PrincipalResource(
            format_summary_address(LATEST),
            "summary",
            f"The summary of your latest run. {ABOUT_SUMMARIES}",
            MARKDOWN,
            read,
        ),
        PrincipalResource(
            format_summary_address("{run}"),
            "summary of a run",
            f"The summary of a run. {ABOUT_SUMMARIES}",
            MARKDOWN,
            read,
            complete_run,
        ),
    )
