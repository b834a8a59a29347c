"""How do the tools of other servers come into force while menugate runs? It follows what each server offers.

Servers are started by calls. Only one that has never said what it offers is started by itself, once, so that its tools
can be listed at all.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_server.config.secrets import build_use_recorder
from mcp_server.config.upstream_tools import MountedTools
from mcp_server.config.upstreams import ConfiguredUpstreams
from mcp_server.model.results import Refusal
from mcp_server.model.text import to_one_line
from mcp_server.model.upstreams import Catalogue, Mount, UpstreamCaller, UpstreamChange
from mcp_server.policy.upstream_pins import compute_mount_digest
from mcp_server.policy.upstream_uris import prefix_uri
from mcp_server.reload import ConfigurationReload
from mcp_server.settings import Settings
from mcp_server.state.upstream_catalogues import FOLDER, save_catalogue
from mcp_server.state.upstream_pins import UpstreamPins
from mcp_server.upstreams.links import LinkOpener
from mcp_server.upstreams.servers import UpstreamServers
from mcp_server.upstreams.sharing.links import SharedLinks

if TYPE_CHECKING:
    from mcp_server.app import Core, LazyPipeline

log = logging.getLogger("menugate")


def log_upstream_faults(upstreams: ConfiguredUpstreams) -> None:
    """Log which servers are left out and why: nobody would look for the reason elsewhere."""
    for broken in upstreams.faults:
        log.warning("the server %s is left out: %s", to_one_line(broken.server), to_one_line(str(broken), 1000))
    for unwise in upstreams.warnings:
        log.warning("the server %s: %s", to_one_line(unwise.server), to_one_line(str(unwise), 1000))


class Nobody:
    """Stands for a client where menugate itself asks a server something: it can do nothing."""

    name = "menugate"
    carried: Collection[str] = ()

    def can(self, what: str) -> bool:
        return False

    def get_note(self, key: str) -> str:
        return ""

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        return {"action": "cancel"}

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        return {key: {"action": "cancel"} for key in questions}

    async def announce_change(self, what: str, uri: str = "") -> None:
        pass

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        pass

    async def end_elicitation(self, elicitation: str) -> None:
        pass


def build_catalogue_follower(
    mounted: MountedTools,
    core: "Core",
    pipeline: "LazyPipeline",
    reload: ConfigurationReload,
    announce_resource: Callable[[str, str, str], Awaitable[None]],
) -> "CatalogueFollower":
    """Build what runs the servers. None of them is started here."""
    settings, network = reload.settings, reload.held.library.config.network
    logs = settings.state / FOLDER
    commands, redact = pipeline.guards.commands, core.redactor.redact
    opener = LinkOpener(commands, logs, settings.person, network, redact, build_use_recorder(settings))
    links = SharedLinks(opener, settings.secrets, Nobody())
    servers = UpstreamServers(links.open_link, settings.workspace.as_uri(), settings.person, redact=redact)
    follower = CatalogueFollower(servers, mounted.mounts, dict(mounted.catalogues), reload, settings, announce_resource)
    follower.open()
    return follower


@dataclass
class CatalogueFollower:
    """The servers of a running menugate, and what is in force of what they offer."""

    servers: UpstreamServers
    mounts: Sequence[Mount]
    known: dict[str, Catalogue]
    reload: ConfigurationReload
    settings: Settings
    announce_resource: Callable[[str, str, str], Awaitable[None]]
    _asked: list[Mount] = field(default_factory=list[Mount])
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def open(self) -> None:
        self.servers.on_change = self._take_change
        self.servers.set_mounts(self.mounts, self.known)
        self._keep_admitted()

    def take_mounted(self, mounted: MountedTools) -> None:
        """Run these servers from now on, and no others; ask those that are new what they offer."""
        before, self.mounts = self.mounts, mounted.mounts
        if before != self.mounts:
            self.known = dict(mounted.catalogues)
            self.servers.set_mounts(self.mounts, self.known)
            self.ask_unknown()
        self._keep_admitted()

    def ask_unknown(self) -> None:
        """Ask the servers that have never said what they offer."""
        for mount in self.mounts:
            if mount.name not in self.known and mount not in self._asked:
                self._asked.append(mount)
                self._start(self._ask(mount))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.servers.close()

    async def _ask(self, mount: Mount) -> None:
        caller = UpstreamCaller(self.settings.person, "", Nobody())
        try:
            await self.servers.get_catalogue(mount.name, caller)
        except Refusal as refused:
            log.warning("the server %s has no tools yet: %s", mount.name, refused.problem.message)

    def _take_change(self, change: UpstreamChange) -> None:
        if change.what == "resource":
            self._start(self._announce_resource(change))
        if change.what != "catalogue":
            return
        name = change.mount
        catalogue = self.servers.get_status(name).catalogue
        before = self.known.get(name)
        if catalogue is None or (before is not None and is_same_offer(before, catalogue)):
            return
        self.known[name] = catalogue
        self.reload.take_catalogues(dict(self.known))
        mount = next(one for one in self.mounts if one.name == name)
        self._start(self._keep(mount, catalogue))

    def _keep_admitted(self) -> None:
        """Add what you allowed in advance to your approval: if it changes later, that counts as a change."""
        mounted = self.reload.held.mounted
        pins = UpstreamPins(self.settings.secrets, self.settings.workspace)
        for mount in mounted.mounts if mounted else ():
            if mounted and (parts := mounted.admitted.get(mount.name)):
                try:
                    pins.admit_parts(mount.name, compute_mount_digest(mount), parts)
                except (OSError, Refusal) as wrong:
                    log.warning("what is new in %s could not be added to your approval: %s", mount.name, wrong)

    async def _announce_resource(self, change: UpstreamChange) -> None:
        mount = next((one for one in self.mounts if one.name == change.mount), None)
        principals = [change.principal] if change.principal else self.reload.postures.get_known_principals()
        if mount is None:
            return
        for principal in principals:
            await self.announce_resource(principal, "resource", prefix_uri(mount.uri_prefix, change.uri))

    async def _keep(self, mount: Mount, catalogue: Catalogue) -> None:
        try:
            await asyncio.to_thread(save_catalogue, self.settings.state, self.settings.secrets, mount, catalogue)
        except OSError as wrong:
            log.warning("what the server %s offers could not be kept for the next start: %s", mount.name, wrong)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def is_same_offer(one: Catalogue, other: Catalogue) -> bool:
    """True if nothing changed but when it was read."""
    return all(getattr(one, name) == getattr(other, name) for name in FIELDS)


FIELDS = ("tools", "prompts", "resources", "templates", "instructions", "server", "capabilities", "protocol")
