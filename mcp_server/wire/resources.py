"""Where does a client read what a run came to? At an address with the run in it, and only if the run is its own."""

from collections.abc import Mapping, Sequence
from functools import partial

from mcp_server.model.address import LATEST, address
from mcp_server.model.tool_packs import PrincipalResource
from mcp_server.state.gathering import known_runs, of_run
from mcp_server.state.store import Store

MARKDOWN = "text/markdown"
NOTHING = "Nothing is on record for you yet, so there is no summary. The first call begins one."
ABOUT = "Goals, decisions, current plan, open issues and important outputs, from what is on record; no reasoning."


def summaries(store: Store) -> tuple[PrincipalResource, ...]:
    async def known(principal: str) -> Sequence[str]:
        # What ended a moment ago is on its way into the ledger; whoever reads now wants it to be there.
        await store.write(lambda _tx: None)
        return await store.read(partial(known_runs, principal=principal))

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        runs = await known(principal)
        run = holes.get("run", LATEST)
        chosen = next(iter(runs), None) if run == LATEST else run
        found = await store.read(partial(of_run, run=chosen)) if chosen is not None else None
        if found is not None and found.principal == principal:
            return found.text
        return NOTHING if run == LATEST else None

    async def values(principal: str, _hole: str, typed: str) -> Sequence[str]:
        return [run for run in (LATEST, *await known(principal)) if run.startswith(typed)]

    return (
        PrincipalResource(address(LATEST), "summary", f"What your latest run came to. {ABOUT}", MARKDOWN, read),
        PrincipalResource(address("{run}"), "summary of a run", f"What a run came to. {ABOUT}", MARKDOWN, read, values),
    )
