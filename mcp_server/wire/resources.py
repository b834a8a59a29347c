"""Which resources can a client read? Those about its own runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mcp_server.model.reports import LATEST, REPORT_ADDRESS, format_summary_address
from mcp_server.model.tool_packs import PrincipalResource
from mcp_server.state import runs
from mcp_server.state.store import Store
from mcp_server.state.summaries import build_run_summary, find_known_runs

# Where is what was found about a run to be read? At an address of its own, by whose run it was.

NO_REPORT = "No run of yours is over yet, so there is no report. `complete` ends a run, and writes one."
ABOUT_REPORTS = "What was found when a run was over: issues, missing steps, next actions."


def build_report_resources(store: Store, redact: Callable[[str], str]) -> tuple[PrincipalResource, ...]:
    """The newest at the plain address, each by the name of its run below it."""

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        found = await store.read(partial(runs.find_report, run=holes.get("run"), principal=principal))
        if found is None:
            return None if "run" in holes else NO_REPORT
        return redact(found.format_text())

    return (
        PrincipalResource(REPORT_ADDRESS, "report", f"{ABOUT_REPORTS} The newest.", "text/markdown", read),
        PrincipalResource(REPORT_ADDRESS + "/{run}", "report of a run", ABOUT_REPORTS, "text/markdown", read),
    )


# Where does a client read what a run came to? At an address with the run in it, and only if the run is its own.

MARKDOWN = "text/markdown"
NO_SUMMARY = "Nothing is on record for you yet, so there is no summary. The first call begins one."
ABOUT_SUMMARIES = (
    "Goals, decisions, current plan, open issues and important outputs, from what is on record; no reasoning."
)


def build_summary_resources(store: Store) -> tuple[PrincipalResource, ...]:
    async def list_known_runs(principal: str) -> Sequence[str]:
        # What ended a moment ago is on its way into the ledger; whoever reads now wants it to be there.
        await store.write(lambda _tx: None)
        return await store.read(partial(find_known_runs, principal=principal))

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        runs = await list_known_runs(principal)
        run = holes.get("run", LATEST)
        chosen = next(iter(runs), None) if run == LATEST else run
        found = await store.read(partial(build_run_summary, run=chosen)) if chosen is not None else None
        if found is not None and found.principal == principal:
            return found.text
        return NO_SUMMARY if run == LATEST else None

    async def complete_run(principal: str, _hole: str, typed: str) -> Sequence[str]:
        return [run for run in (LATEST, *await list_known_runs(principal)) if run.startswith(typed)]

    return (
        PrincipalResource(
            format_summary_address(LATEST),
            "summary",
            f"What your latest run came to. {ABOUT_SUMMARIES}",
            MARKDOWN,
            read,
        ),
        PrincipalResource(
            format_summary_address("{run}"),
            "summary of a run",
            f"What a run came to. {ABOUT_SUMMARIES}",
            MARKDOWN,
            read,
            complete_run,
        ),
    )
