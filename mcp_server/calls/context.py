"""What does a tool receive? The ports of its call, each built on first use, and nothing else."""

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.menus import MenuNavigator
from mcp_server.calls.request import ResolvedCall
from mcp_server.guards.grants import PlaceBounds
from mcp_server.guards.path_targets import Target
from mcp_server.model.context import Client, Person, Progress, SessionObjects
from mcp_server.model.documents import Records
from mcp_server.model.files import Files, Stamp
from mcp_server.model.index import Index
from mcp_server.model.memory import Memory
from mcp_server.model.policy import Policy, RuleKind
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Processes
from mcp_server.model.results import Ending
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Arguments, Demand
from mcp_server.model.web_access import WebAccess
from mcp_server.policy.network import find_named_addresses
from mcp_server.policy.rule_trees import build_hidden_test, build_place_test
from mcp_server.state.store import Store

if TYPE_CHECKING:
    from mcp_server.guards.network.network import CallNetwork
    from mcp_server.model.secrets import SecretNames
    from mcp_server.model.upstreams import UpstreamAccess

    # Type checkers do not accept a cached property where a protocol (`Context`) declares a property.
    made_once = property
else:
    from functools import cached_property as made_once


class SeenBy(Struct, frozen=True):
    """What a session has read: it may change only what it has seen as it is now. The session `` has seen nothing."""

    store: Store
    session: str = ""

    def remember(self, path: str, stamp: Stamp) -> None:
        self.store.remember_seen(self.session, path, stamp)

    def recall(self, path: str) -> Stamp | None:
        return self.store.recall_seen(self.session, path)


class PortFactories(Struct, frozen=True):
    """Build the ports of a call."""

    files: Callable[[Session, Demand, Profile, PlaceBounds | None], Files]
    processes: Callable[[Demand, Profile, dict[str, str] | None], Processes]
    network: "Callable[[Demand, Profile, WebAccess, Collection[tuple[str, int]]], CallNetwork]"
    """The last are the hosts that the call's own arguments name."""
    belongings: Callable[[Session], SessionObjects]
    person: Callable[[Session, Client, bool], Person]
    """The last says whether only a menu handle leads back to the session."""
    records: Callable[[LiveSession, Session, str], Records]
    index: Index
    memory: Callable[[Session], Memory]
    progress: Callable[[Progress], Progress]
    upstreams: "Callable[[ResolvedCall, Progress], UpstreamAccess]"
    secrets: "Callable[[Session], SecretNames]"


class ToolContext(Struct, frozen=True, dict=True):
    _ports: PortFactories
    _resolved: ResolvedCall
    _profile: Profile
    _call: Callable[[str, Arguments], Awaitable[Ending]]
    _open_desk: Callable[[], MenuNavigator]
    _policy: Policy
    session: Session
    demand: Demand
    stands: Arguments | None = None
    waiver: str | None = None
    """The allow rule that spared the call a question."""
    targets: dict[str, tuple[Target, ...]] | None = None
    """What the paths of a call that the user approved led to then."""
    pinned: dict[str, str] | None = None
    """The scripts that the user approved, with their SHA-256."""
    rehearsal: bool = False
    """The call is only tried: its files are read, and nothing is changed."""

    @property
    def client(self) -> Client:
        return self._resolved.request.client

    @made_once
    def navigator(self) -> MenuNavigator:
        return self._open_desk()

    @property
    def opened_desk(self) -> MenuNavigator | None:
        """None if the tool never used it, and so moved nothing."""
        return vars(self).get("navigator")

    @made_once
    def hides(self) -> Callable[[str], bool] | None:
        call, policy = self._resolved, self._policy
        return build_hidden_test(call.tool, call.readings, policy) if policy.rules.every else None

    @made_once
    def progress(self) -> Progress:
        return self._ports.progress(self._resolved.request.progress)

    @made_once
    def files(self) -> Files:
        rules, tool = self._policy.rules, self._resolved.tool
        # A tool that counts as others has their rules as well.
        ruled = rules.every and (tool.counts_as or any(rules.get_shelf(tool.name, kind) for kind in RuleKind))
        bound = self.targets or self.rehearsal or ruled
        return self._ports.files(self.session, self.demand, self._profile, self._build_bounds() if bound else None)

    def _build_bounds(self) -> PlaceBounds:
        tool, readings, policy = self._resolved.tool, self._resolved.readings, self._policy
        is_kept = build_place_test(tool, readings, policy, self.waiver)
        arriving = build_place_test(tool, readings, policy, self.waiver, tool.tree_to) if tool.tree_to else None
        return PlaceBounds(is_kept, arriving, self.targets or {}, self.rehearsal)

    @made_once
    def processes(self) -> Processes:
        return self._ports.processes(self.demand, self._profile, self.pinned)

    @made_once
    def network(self) -> "CallNetwork":
        call, policy = self._resolved, self._policy
        named = {(one.host, one.port) for one in find_named_addresses(call.tool, call.arguments)}
        return self._ports.network(self.demand, self._profile, policy.web, named)

    def list_hosts(self) -> Collection[str]:
        network: CallNetwork | None = vars(self).get("network")
        return network.hosts if network is not None else ()

    async def close(self) -> None:
        """End what the call opened and no longer needs."""
        network: CallNetwork | None = vars(self).get("network")
        if network is not None:
            await network.close()

    @made_once
    def belongings(self) -> SessionObjects:
        return self._ports.belongings(self.session)

    @made_once
    def person(self) -> Person:
        live = self._resolved.live
        return self._ports.person(self.session, self.client, not (live.passing or live.common.connected))

    @made_once
    def records(self) -> Records:
        return self._ports.records(self._resolved.live, self.session, self._resolved.tool.name)

    @made_once
    def secrets(self) -> "SecretNames":
        return self._ports.secrets(self.session)

    @made_once
    def upstreams(self) -> "UpstreamAccess":
        return self._ports.upstreams(self._resolved, self.progress)

    @property
    def index(self) -> Index:
        return self._ports.index

    @made_once
    def memory(self) -> Memory:
        return self._ports.memory(self.session)

    async def call_tool(self, tool: str, arguments: Arguments) -> Ending:
        return await self._call(tool, arguments)
