"""Which tool list does a client get? A menu can be listed in several ways, each prepared as bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from zlib import crc32

from msgspec.structs import replace
from pydantic_core import to_json

from mcp_server.model.menus import CARRIERS, Commands, Hosts, Listing
from mcp_server.model.policy import Policy
from mcp_server.model.posture import Posture
from mcp_server.model.sessions import Session
from mcp_server.policy.decision import list_visible_tools
from mcp_server.policy.upstream_offers import list_offers
from mcp_server.wire.caller import Caller
from mcp_server.wire.revisions import COMPLETE, SHOWN, UNCACHED, shape_result
from mcp_server.wire.translate import prepare_tool

MAX_READY = 500
"""Lists that are kept as bytes: sessions can add tools in any order."""


class EncodedTools(list[dict[str, Any]]):
    """Tools in list order, with their JSON for transports that let us write bytes."""

    @cached_property
    def json(self) -> bytes:
        return to_json(list(self))

    keys: tuple[str, ...] = ()
    """What tells this list from another."""


def is_fixed(face: Listing, session: Session, relists: bool | None) -> bool:
    """True if a client's list, with the carriers in it, stays the same whichever mode is entered."""
    return not session.pinned and (face is Listing.STABLE or (face is Listing.CARRIED and not relists))


def has_carriers(face: Listing, session: Session) -> bool:
    """True if the carriers are in such a list."""
    return not session.pinned and face not in (Listing.MASKED, Listing.FLAT)


@dataclass
class Listings:
    policy: Policy
    hosts: Hosts
    chosen: Listing | None
    """The listing that the operator chose; None lets era, transport and host decide."""
    stamp: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the SDK writes into the `_meta` of every modern result; known once the server is built."""
    _prepared: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict[str, dict[str, dict[str, Any]]])
    _digests: dict[str, str] = field(default_factory=dict[str, str])
    """The keys of other servers' tools."""
    _ready: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict[tuple[Any, ...], dict[str, Any]])

    def choose_listing(self, caller: Caller) -> Listing:
        """Return the operator's choice, or what fits the era, the transport and the host."""
        if not caller.is_remembered and self.chosen is not Listing.FLAT:
            # Without a session, a list that changes with the mode would stay at ROOT for ever.
            return Listing.STABLE
        if self.chosen is not None:
            return self.chosen
        host = self.hosts.find_host(caller.client)
        return host.listing if host else Listing.CARRIED

    def judge_by(self, policy: Policy) -> None:
        """Use another policy for the lists."""
        if policy.tools is not self.policy.tools or policy.menus is not self.policy.menus:
            self._prepared.clear()
            self._digests.clear()
        self.policy = policy
        self._ready.clear()

    def keeps_prompts(self, caller: Caller) -> bool:
        """True if this host is known to show prompts only to its user."""
        host = self.hosts.find_host(caller.client)
        return host is not None and host.commands is Commands.PERSON

    def may_widen(self, caller: Caller, version: str) -> bool:
        """True if a command of this host may ask for more: its prompts are its user's, and in this version, too."""
        host = self.hosts.find_host(caller.client)
        return host is not None and host.commands is Commands.PERSON and host.is_known_version(version)

    def get_tool_names(self, face: Listing, session: Session, posture: Posture) -> tuple[str, ...]:
        if not has_carriers(face, session):
            return list_visible_tools(session, posture, self.policy)
        names = list_visible_tools(
            session if face is Listing.CARRIED else replace(session, mode=None, added=()), posture, self.policy
        )
        meta = tuple(name for name in names if self.policy.tools[name].meta)
        return (*meta, *CARRIERS, *names[len(meta) :])

    def get_list_keys(self, face: Listing, session: Session, posture: Posture) -> tuple[str, ...]:
        """Return what tells one list from another: the names, and how other servers describe their tools."""
        return tuple(map(self._get_key, self.get_tool_names(face, session, posture)))

    def _get_key(self, name: str) -> str:
        if not self.policy.tools[name].written:
            return name
        if name not in self._digests:
            self._digests[name] = f"{name} {crc32(to_json(self._get_prepared_tools(SHOWN)[name]))}"
        return self._digests[name]

    def get_offer_keys(self, client: str, session: Session, posture: Posture) -> dict[str, int]:
        """Return what tells the resources and prompts of servers, as this client sees them, from others."""
        host = self.hosts.find_host(client)
        kinds = {"resources": ("resources", "templates"), "prompts": ("prompts",)}
        if host is None or host.commands is not Commands.PERSON:
            del kinds["prompts"]
        listed = {
            what: [one for kind in parts for one in list_offers(kind, session, posture, self.policy)]
            for what, parts in kinds.items()
        }
        return {what: crc32(to_json(entries)) if entries else 0 for what, entries in listed.items()}

    def get_tools_list(self, caller: Caller, session: Session, chosen: Posture) -> dict[str, Any]:
        """Return the answer to `tools/list`; equal requests get the same object."""
        face = self.choose_listing(caller)
        posture = replace(chosen, epoch=0)
        at = (session.listing_key, session.held, session.pinned, session.flat)
        key = (face, at, posture, caller.version)
        ready = self._ready.get(key)
        if ready is None:
            tools = self._get_prepared_tools(caller.version)
            names = self.get_tool_names(face, session, posture)
            shown = EncodedTools(tools[name] for name in names)
            shown.keys = tuple(map(self._get_key, names))
            ready = shape_result({"tools": shown, **COMPLETE, **UNCACHED}, caller.protocol, self.stamp)
            if len(self._ready) >= MAX_READY:
                self._ready.clear()
            self._ready[key] = ready
        return ready

    def get_prepared_tool(self, version: str, name: str) -> Mapping[str, Any]:
        """Return one tool as a client of that protocol revision sees it."""
        return self._get_prepared_tools(version)[name]

    def _get_prepared_tools(self, version: str) -> Mapping[str, dict[str, Any]]:
        prepared = self._prepared.get(version)
        if prepared is None:
            prepared = self._prepared[version] = {
                name: prepare_tool(tool, self.policy.menus, version)
                for name, tool in self.policy.tools.items()
                if tool.is_listed
            }
        return prepared
