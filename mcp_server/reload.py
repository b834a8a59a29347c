"""Which rules apply after the user edits the configuration? The new ones, from the next decision on.

The files are checked before every decision, unless the system reports no change. They are also checked from time to
time, so that tool lists follow. If a file is invalid, empty or gone, its last valid version stays in force. An editor
may still be writing: until a valid file has been unchanged for a moment, its restrictions apply at once and its
permissions wait, whatever happens to the file meanwhile."""

import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from msgspec.structs import replace

from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures
from mcp_server.calls.secrets import KnownSecrets
from mcp_server.config.load import Configuration, apply_configuration, get_limits
from mcp_server.config.merge import combine_configurations, is_as_strict_as
from mcp_server.config.operator import OperatorConfig
from mcp_server.config.reload import RenewedConfiguration, list_sources, list_watched_paths, reload_configuration
from mcp_server.config.workspace import FILE, PROMPTS, WorkspaceConfig
from mcp_server.model.parts import list_parts
from mcp_server.model.policy import Policy
from mcp_server.settings import OPERATORS_FILE, Settings
from mcp_server.state import ledger
from mcp_server.state.glances import delete_glances
from mcp_server.state.locks import LifeLock
from mcp_server.state.processes import get_own_pid, read_start_time
from mcp_server.state.servers import Server, load_servers, publish_server, withdraw_server
from mcp_server.state.store import Store
from mcp_server.watch import FileWatch

if TYPE_CHECKING:
    from mcp_server.model.upstreams import Catalogue

log = logging.getLogger("menugate")
SECONDS = 0.15
"""Seconds between two checks when there are no calls."""
STILL_NS = 150_000_000
"""Seconds that a file must be unchanged until all of it applies; some file systems' clocks are no finer than this."""
FOLLOWS = frozenset(("rules", "max_profile", "posture", "budget", "glance", "upstreams"))
"""The parts of the configuration that a running server follows."""
MOST_TOLD = 8
"""How many of the earlier versions still in force are published for the user's commands."""
WRITTEN = {"folding": "summary", "out_of_band": "approvals"}
"""The names of keys in the file, where they differ from ours."""
Stamps = tuple[tuple[int, ...] | None, ...]


@dataclass
class ConfigurationReload:
    """Keeps the configuration of a running server up to date with its files, and publishes what is in force."""

    started: Configuration
    settings: Settings
    current_policy: CurrentPolicy
    postures: CurrentPostures
    changed: Callable[[Policy], None]
    """Called with every new policy at once, before any decision uses it."""
    store: Store
    secrets: KnownSecrets
    stoppable: bool = False
    """Whether this process handles the signal that ends everything."""
    tell: Callable[[], Awaitable[None]] | None = None
    """Notifies the clients whose list may have changed."""
    follow_mounts: Callable[[Configuration], None] = lambda _: None
    """Called with a settled version as soon as calls are judged by it: its servers are to run, and no others."""
    held: Configuration = field(init=False)
    """The last valid version, whether or not its files are settled."""
    fault: str = ""
    since: int = 0
    _lock: LifeLock | None = None
    _checking: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    _paths: tuple[str, ...] = ()
    """Cached, because they are checked before every decision."""
    _watch: FileWatch = field(init=False)
    _dirty: bool = True
    """Something changed, or this system reports no changes. On a busy server a check costs a tenth of every call."""
    _stamps: Stamps = ()
    _still: bool = True
    _operators: tuple[Configuration, ...] = ()
    """The versions of the operator's file in force, the newest last. Until a valid one has been unchanged for a
    moment, an editor may still be writing it, so the versions before it stay in force as well."""
    _owns: tuple[Configuration, ...] = ()
    """The same for the workspace's own file."""
    _older: Sequence[Configuration] = ()
    _behind: bool = False
    """Whether the postures still follow the previous version."""
    _mounts_behind: bool = False
    """Whether the servers still follow the previous version."""
    _moved: bool = False
    _news: bool = False
    _unsaid: bool = False
    """Whether the disk was too full to publish what is in force."""

    def __post_init__(self) -> None:
        self.held = self.started
        self._operators = self._owns = (self.started,)
        self._paths = tuple(list_watched_paths(self.held, self.settings, self.secrets.folder))
        self.since = time.time_ns()
        self.current_policy.renew, self.current_policy.stale = self.renew, True
        self._watch = FileWatch(self._mark_dirty)

    async def renew(self) -> None:
        """Catch up before a decision if something may have changed."""
        # Watch before checking, so that later changes are noticed.
        self._dirty = not self._watch.watch_paths(self._paths)
        await self._check_for_changes()

    def _mark_dirty(self) -> None:
        self._dirty = self.current_policy.stale = True

    async def _check_for_changes(self) -> None:
        async with self._checking:
            await self._catch_up()

    async def _catch_up(self) -> None:
        # Whatever interrupts this, the next call checks again.
        self.current_policy.stale = True
        await self.secrets.catch_up()
        stamps, settled = self._read_stamps()
        if stamps != self._stamps or settled != self._still:
            paths_before = self._paths
            renewed = await self._read(settled)
            # Only now: if the call that reads is cancelled, the next one has to read.
            self._stamps, self._still = stamps, settled
            self._take_over(renewed, settled)
            self._paths = tuple(list_watched_paths(self.held, self.settings, self.secrets.folder))
            if self.held.mounted is not None:
                # You may have approved a server, or withdrawn your approval.
                self.take_catalogues(self.held.mounted.catalogues)
            self._follow_mounts()
            self._dirty = self._dirty or self._paths != paths_before
        if self._behind:
            await self.postures.refresh()
            self._behind = False
        self.current_policy.stale = self._dirty or not self._still

    async def follow(self) -> None:
        """Follow changes between calls, so that lists follow too and a file that was being written settles."""
        self.publish_judgement()
        unwanted = not self.current_policy.keeps_glances
        while True:
            await anyio.sleep(SECONDS)
            try:
                if unwanted:
                    await self.store.write(delete_glances)
                    unwanted = False
                # Check even what is watched: nothing reports changes to a folder further up.
                await self._check_for_changes()
                if self._unsaid:
                    self.publish_judgement()
                if self._moved and self.tell is not None:
                    self._moved = False
                    await self.tell()
                if self._news and self._still:
                    self._news = False
                    await self._record_rules()
                    unwanted = not self.current_policy.keeps_glances
            except Exception:
                log.exception("the changed configuration could not be applied")

    async def _record_rules(self) -> None:
        """Record which configuration and how many rules are in force from now on, and why anything is ignored."""
        config = str(self.settings.config) if self.settings.config else None
        count = len(self.current_policy.policy.rules.every)
        await self.store.write(partial(ledger.record_rules, config=config, rules=count, fault=self.fault))

    def take_life_lock(self) -> None:
        """Show commands that cannot see this process that it is running."""
        try:
            self._lock = LifeLock.take(self.settings.state)
        except OSError as error:
            log.warning("could not record that this server is running: %s", error)

    def close(self) -> None:
        self._watch.stop_watching()
        withdraw_server(self.settings.state, get_own_pid())
        if self._lock is not None:
            self._lock.release()

    def publish_judgement(self) -> None:
        """Publish what is in force here, for the user's commands."""
        settings, pid = self.settings, get_own_pid()
        config, texts = settings.config, self._get_held_texts() if self.fault else {}
        if config and self.fault and texts[str(config)] is None:
            # It appeared while we were running and was never in force: publish that there is no file.
            config = None
        # Include the newest version: a command may find the file half written.
        older = [*self._older[-MOST_TOLD:], self.held] if self._older else []
        server = Server(
            pid=pid,
            born=read_start_time(pid),
            config=str(config) if config else None,
            profile=settings.profile,
            max_profile=settings.max_profile,
            menus=[str(configuration) for configuration in settings.menus],
            since=self.since,
            fault=self.fault,
            restart=self._find_restart_keys(),
            texts=texts,
            older=[
                {path: configuration.said.get(Path(path)) for path in self._get_held_texts()} for configuration in older
            ],
            stoppable=self.stoppable,
        )
        try:
            publish_server(settings.state, server)
            self._unsaid = False
        except OSError as error:
            if not self._unsaid:
                log.warning("could not record which configuration is in force: %s", error)
            self._unsaid = True

    def _get_held_texts(self) -> dict[str, str | None]:
        """Return the text of each file that is in force; None for a file that never was."""
        paths = (self.settings.workspace / FILE, *([self.settings.config] if self.settings.config else []))
        return {str(path): self.held.said.get(path) for path in paths}

    async def _read(self, settled: bool) -> RenewedConfiguration:
        """Read the files as they are now; return them and why any of them is ignored."""
        self._find_operators_file()
        while True:
            held = self.held
            # A keyring may take seconds to give a secret, and whoever makes no call must not wait for it.
            renewed = await to_thread.run_sync(_read_safely, held, self.settings, settled)
            if held is self.held:
                return renewed

    def _find_operators_file(self) -> None:
        default_config, config = self.settings.operators / OPERATORS_FILE, self.settings.config
        if config is None or (config == default_config and config not in self.held.said):
            # It may appear after the start, and disappear before it was ever in force.
            self.settings = replace(self.settings, config=default_config if _read_stamp(default_config) else None)
            self._paths = tuple(list_watched_paths(self.held, self.settings, self.secrets.folder))

    def _take_over(self, renewed: RenewedConfiguration, settled: bool) -> None:
        previous_fault, self.fault = self.fault, renewed.fault
        if renewed.fault and renewed.fault != previous_fault:
            log.warning("the last valid rules stay in force: %s", renewed.fault)
        configuration, held = renewed.configuration, self.held
        unchanged = list_sources(configuration) == list_sources(held)
        if upstreams := configuration.library.config.upstreams:
            self.secrets.learn(upstreams.secrets)
        operators = keep_stricter(
            self._operators, configuration, settled and renewed.operators, lambda one: one.library.config
        )
        owns = keep_stricter(self._owns, configuration, settled and renewed.own, lambda one: one.own)
        if not unchanged or (len(operators), len(owns)) != (len(self._operators), len(self._owns)):
            self.since = self.since if unchanged else time.time_ns()
            self.held, self._operators, self._owns = configuration, operators, owns
            self._apply_configuration()
        elif renewed.fault == previous_fault:
            return
        self._news = True
        self.publish_judgement()

    def _apply_configuration(self) -> None:
        """Apply the newest version, combined with earlier ones that are still in force."""
        self._older = [
            *map(self._build_with_operators, self._operators[:-1]),
            *map(self._build_with_workspace, self._owns[:-1]),
        ]
        combined = combine_configurations([*self._older, self.held])
        policy = replace(
            self.current_policy.policy,
            tools=combined.policy.tools,
            menus=combined.policy.menus,
            rules=combined.policy.rules,
            ceiling=combined.policy.ceiling,
            budget=combined.policy.budget,
            unfit=combined.policy.unfit,
            meant=combined.policy.meant,
        )
        self.current_policy.policy = policy
        self.current_policy.keeps_glances = self.held.library.config.glance
        self.changed(policy)
        self.postures.limits = get_limits(combined, self.settings)
        self._behind = self._moved = self._mounts_behind = True

    def _follow_mounts(self) -> None:
        if self._mounts_behind and self._still:
            self._mounts_behind = False
            self.follow_mounts(self.held)

    def take_catalogues(self, catalogues: "Mapping[str, Catalogue]") -> None:
        """Put the tools that servers offer now into force, with the menus and rules about them, all at once."""
        versions = {id(one): self._mount(one, catalogues) for one in (*self._operators, *self._owns, self.held)}
        self._operators = tuple(versions[id(one)] for one in self._operators)
        self._owns = tuple(versions[id(one)] for one in self._owns)
        self.held = versions[id(self.held)]
        self._apply_configuration()
        self._follow_mounts()

    def _mount(self, version: Configuration, catalogues: "Mapping[str, Catalogue]") -> Configuration:
        from mcp_server.config.upstream_tools import mount_catalogues  # most people mount nothing

        if version.mounted is None:
            return version
        mounted = mount_catalogues(version, replace(version.mounted, catalogues=catalogues))
        operator_text = version.said.get(self.settings.config) if self.settings.config else None
        applied = apply_configuration(mounted, self.settings, operator_text)
        return applied if isinstance(applied, Configuration) else version

    def _build_with_operators(self, version: Configuration) -> Configuration:
        operator_text = version.said.get(self.settings.config) if self.settings.config else None
        applied = apply_configuration(replace(self.held, library=version.library), self.settings, operator_text)
        return applied if isinstance(applied, Configuration) else version

    def _build_with_workspace(self, version: Configuration) -> Configuration:
        operator_text = self.held.said.get(self.settings.config) if self.settings.config else None
        applied = apply_configuration(replace(self.held, own=version.own), self.settings, operator_text)
        return applied if isinstance(applied, Configuration) else version

    def _find_restart_keys(self) -> list[str]:
        before, now = self.started.library.config, self.held.library.config
        names = [key for key in list_parts(type(before)) if getattr(before, key) != getattr(now, key)]
        keys = [WRITTEN.get(name, name) for name in names if name not in FOLLOWS]
        prompts_changed = (self.started.own.prompts, self.started.trusted) != (self.held.own.prompts, self.held.trusted)
        restart_for_prompts = prompts_changed and (self.started.own.prompts or self.held.own.prompts)
        return sorted({*keys, *((PROMPTS,) if restart_for_prompts else ())})

    def _read_stamps(self) -> tuple[Stamps, bool]:
        """Return the metadata of the files, and whether they have settled."""
        stamps = tuple(map(_read_stamp, self._paths))
        now = time.time_ns()
        # A date in the future says nothing about the last write.
        dates = (date for stamp in stamps if stamp for date in stamp[:2])
        return stamps, not any(now - STILL_NS <= date <= now + STILL_NS for date in dates)


def _read_safely(held: Configuration, settings: Settings, settled: bool) -> RenewedConfiguration:
    try:
        return reload_configuration(held, settings, settled)
    except Exception as error:  # catch everything: a call is judged by the last valid version, never by nothing
        log.exception("the changed configuration could not be applied")
        return RenewedConfiguration(held, f"it could not be read ({type(error).__name__})", False, False)


def keep_stricter(
    versions: Sequence[Configuration],
    newest: Configuration,
    settled: bool,
    get_part: Callable[[Configuration], OperatorConfig | WorkspaceConfig],
) -> tuple[Configuration, ...]:
    """Keep the earlier versions that forbid something the newest one allows."""
    return (
        *(
            ()
            if settled
            else (version for version in versions if not is_as_strict_as(get_part(newest), get_part(version)))
        ),
        newest,
    )


def _read_stamp(path: Path | str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # asked at every decision, and a Path costs as much again
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def find_server_differences(settings: Settings) -> Iterator[tuple[Server, str]]:
    """Yield what is configured but not in force, for each of the running servers."""
    for server in load_servers(settings.state):
        yield from ((server, difference) for difference in server.differences)
        if server.config != (str(settings.config) if settings.config else None):
            yield server, f"Process {server.pid} uses {server.config or 'no configuration'}."
