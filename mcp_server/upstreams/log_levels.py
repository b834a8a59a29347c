"""How much of its log does a server send? As much as those of its callers want that want the most.

A server of the newest revision reads it in each request. An older one is told, whenever it becomes different.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp_types import LOG_LEVEL_META_KEY

from mcp_server.model.context import LOG_LEVELS
from mcp_server.upstreams.handshake import Agreement
from mcp_server.upstreams.peer import Peer, UpstreamError

SET_LEVEL = "logging/setLevel"
SECONDS = 2.0
"""A call does not wait longer for the server to take note."""


@dataclass
class LogLevels:
    level: str | None = None
    """The one that an older server was told last; None if it was told none, and sends what it wants."""

    async def adjust(self, peer: Peer, agreement: Agreement, metas: Iterable[Mapping[str, Any]]) -> None:
        """`metas`: the `_meta` of the calls that are running, or are about to."""
        wanted = find_lowest_level(metas)
        if agreement.modern or "logging" not in agreement.capabilities or wanted in (None, self.level):
            return
        if self.level is None and wanted == DEFAULT:
            return
        self.level = wanted
        try:
            with anyio.move_on_after(SECONDS):
                await peer.ask(SET_LEVEL, *agreement.stamp(SET_LEVEL, {"level": wanted}))
        except UpstreamError as error:
            peer.faults[f"`{SET_LEVEL}` failed: {error.message[:100]}"] += 1


DEFAULT = "info"
"""What clients are taken to want that do not say. A server that was never told anything is left alone then."""


def find_lowest_level(metas: Iterable[Mapping[str, Any]]) -> str | None:
    levels = {meta.get(LOG_LEVEL_META_KEY) for meta in metas}
    return next((level for level in LOG_LEVELS if level in levels), None)


def drop_level(params: Mapping[str, Any]) -> dict[str, Any]:
    """Take the level out of a request for an older server, which would not know it."""
    meta = {key: value for key, value in params.get("_meta", {}).items() if key != LOG_LEVEL_META_KEY}
    return {**params, "_meta": meta} if meta else {key: value for key, value in params.items() if key != "_meta"}
