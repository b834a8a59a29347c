"""Where does a client read what a run came to? At an address with the run in it, and only if the run is its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mcp_server.calls.memory import LATEST, address
from mcp_server.model.pack import Resource, Template
from mcp_server.state import Store
from mcp_server.state.memory import Summary, known_runs, of_run

MARKDOWN = "text/markdown"
SAYS = "Goals, decisions, current plan, open issues and important outputs, from what is on record; no reasoning."


@dataclass(frozen=True)
class Summaries:
    store: Store

    def resources(self) -> tuple[Resource, ...]:
        return (
            Resource(
                uri=address(LATEST),
                name="Summary of the latest run",
                description=f"What your latest run came to. {SAYS}",
                media_type=MARKDOWN,
                read_for=self._latest,
            ),
        )

    def templates(self) -> tuple[Template, ...]:
        return (
            Template(
                uri_template=address("{run}"),
                name="Summary of a run",
                description=f"What one of your runs came to. {SAYS}",
                media_type=MARKDOWN,
                read_for=self._read,
                values_for=self._runs,
            ),
        )

    async def _latest(self, principal: str) -> str | None:
        runs = await self._known(principal)
        return await self._text(principal, runs[0]) if runs else None

    async def _read(self, principal: str, holes: Mapping[str, str]) -> str | None:
        return await self._text(principal, holes["run"])

    async def _text(self, principal: str, run: str) -> str | None:
        # What ended a moment ago is on its way into the ledger; whoever reads now wants it to be there.
        await self.store.write(lambda _tx: None)
        found: Summary | None = await self.store.read(partial(of_run, run=run))
        return found.text if found is not None and found.principal == principal else None

    async def _runs(self, principal: str, _hole: str, typed: str) -> Sequence[str]:
        return [run for run in (LATEST, *await self._known(principal)) if run.startswith(typed)]

    async def _known(self, principal: str) -> Sequence[str]:
        return await self.store.read(partial(known_runs, principal=principal))
