"""Where is what was found about a run to be read? At an address of its own, by whose run it was."""

from collections.abc import Callable, Mapping
from functools import partial

from mcp_server.model.tool_packs import PrincipalResource
from mcp_server.state import runs
from mcp_server.state.store import Store

ADDRESS = "menugate://report"
NOTHING = "No run of yours is over yet, so there is no report. `complete` ends a run, and writes one."
ABOUT = "What was found when a run was over: issues, missing steps, next actions."


def reports(store: Store, redact: Callable[[str], str]) -> tuple[PrincipalResource, ...]:
    """The newest at the plain address, each by the name of its run below it."""

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        found = await store.read(partial(runs.report, run=holes.get("run"), principal=principal))
        if found is None:
            return None if "run" in holes else NOTHING
        return redact(found.as_text())

    return (
        PrincipalResource(ADDRESS, "report", f"{ABOUT} The newest.", "text/markdown", read),
        PrincipalResource(ADDRESS + "/{run}", "report of a run", ABOUT, "text/markdown", read),
    )
