"""What does a server offer? All pages of its lists, as far as they can be read."""

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.upstreams import Catalogue, Definition
from mcp_server.upstreams.handshake import Agreement
from mcp_server.upstreams.peer import METHOD_NOT_FOUND, Peer, UpstreamError

MAX_PAGES, MAX_ENTRIES = 100, 10_000
METHODS: Mapping[str, tuple[str, str]] = {
    "tools": ("tools/list", "tools"),
    "prompts": ("prompts/list", "prompts"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
}
"""By the catalogue's own name for a list: the method that lists it, and the key of its entries."""
ABILITIES: Mapping[str, str] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resources",
}
"""By the same names: what a server declares if it has such a list."""
LISTS = frozenset(METHODS)


class CatalogueReader(Struct, frozen=True):
    peer: Peer
    agreement: Agreement

    async def read(self, known: Catalogue, lists: frozenset[str], now: int) -> Catalogue:
        """Read these lists anew and keep the others."""
        agreed = self.agreement
        read: dict[str, tuple[Definition, ...]] = {}
        for name in METHODS:
            before: tuple[Definition, ...] = getattr(known, name)
            read[name] = await self._read_list(name, before) if name in lists else before
        return Catalogue(
            **read,
            instructions=agreed.instructions,
            server=agreed.server,
            capabilities=agreed.capabilities,
            protocol=agreed.protocol,
            read_at=now,
        )

    async def _read_list(self, name: str, known: tuple[Definition, ...]) -> tuple[Definition, ...]:
        """A server that declares a list and then does not know its method has none. After any other error the list is
        what it was."""
        if ABILITIES[name] not in self.agreement.capabilities:
            return ()
        try:
            return await self._read_pages(*METHODS[name])
        except UpstreamError as error:
            self.peer.faults[f"`{METHODS[name][0]}` failed: {error.message[:100]}"] += 1
            return () if error.code == METHOD_NOT_FOUND else known

    async def _read_pages(self, method: str, key: str) -> tuple[Definition, ...]:
        entries: list[Definition] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            params, headers = self.agreement.stamp(method, {} if cursor is None else {"cursor": cursor})
            page = await self.peer.ask(method, params, headers)
            listed: Any = page.get(key)
            if isinstance(listed, list):
                entries += (cast(Definition, one) for one in cast(list[Any], listed) if isinstance(one, dict))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or cursor in seen or len(entries) >= MAX_ENTRIES:
                break
            seen.add(cursor)
        return tuple(entries[:MAX_ENTRIES])


def keep_lists(known: Catalogue, read: Catalogue, announced: frozenset[str]) -> Catalogue:
    """Keep each list that is suddenly empty although the server did not announce that it changed. Right after a start
    that is more often a server that is not ready yet than one that has nothing."""

    def choose(name: str) -> tuple[Definition, ...]:
        now: tuple[Definition, ...] = getattr(read, name)
        return now if now or name in announced else getattr(known, name)

    return replace(
        read,
        tools=choose("tools"),
        prompts=choose("prompts"),
        resources=choose("resources"),
        templates=choose("templates"),
    )
