"""Which running instance answers a call, and what becomes of the call? The `Upstreams` port over all mounts."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from msgspec.structs import replace

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Arguments
from mcp_server.model.upstreams import (
    Catalogue,
    HttpTarget,
    Mount,
    Serve,
    UpstreamCaller,
    UpstreamChange,
    UpstreamState,
    UpstreamStatus,
    WireResult,
)
from mcp_server.policy.upstream_pins import compute_mount_digest
from mcp_server.upstreams.calls import CallLimits, Parked, UpstreamCall
from mcp_server.upstreams.instance import MAX_STARTS, InstanceEvents, UpstreamInstance
from mcp_server.upstreams.messages import Link
from mcp_server.upstreams.parked import ParkedCalls

OpenLink: TypeAlias = Callable[[Mount, str], AbstractAsyncContextManager[Link]]
"""Connects to a mount on behalf of a principal."""
SHARED_BY: Mapping[Serve, Callable[[UpstreamCaller], str]] = {
    Serve.SESSION: lambda caller: f"session {caller.principal} {caller.session if caller.lasting else ''}",
    Serve.PRINCIPAL: lambda caller: f"principal {caller.principal}",
    Serve.ALL: lambda _: "",
}
"""Calls with the same answer share an instance."""
RANK: Mapping[UpstreamState, int] = {
    UpstreamState.READY: 0,
    UpstreamState.STARTING: 1,
    UpstreamState.LOGIN: 2,
    UpstreamState.AWAY: 3,
    UpstreamState.IDLE: 4,
    UpstreamState.DISABLED: 5,
}
"""Of several instances, the one with the lowest number is the mount's state."""


@dataclass(eq=False)
class UpstreamServers:
    open_link: OpenLink
    workspace: str
    """The workspace's URI."""
    owner: str
    """The principal who runs this server. Others may be remote, and never share an instance with them."""
    on_change: Callable[[UpstreamChange], None] = lambda _: None
    redact: Callable[[str], str] = str
    """Masks every secret that is known; what it changes has one in it."""
    _mounts: dict[str, Mount] = field(default_factory=dict[str, Mount])
    _definitions: dict[str, str] = field(default_factory=dict[str, str])
    """The digest of each mount's definition."""
    _catalogues: dict[str, Catalogue] = field(default_factory=dict[str, Catalogue])
    _instances: dict[tuple[str, str], UpstreamInstance] = field(default_factory=dict[tuple[str, str], UpstreamInstance])
    _parked: ParkedCalls = field(default_factory=ParkedCalls)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_STARTS))
    _retired: set[UpstreamInstance] = field(default_factory=set[UpstreamInstance])
    """Those that only finish the calls they have."""
    _ending: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def set_mounts(self, mounts: Iterable[Mount], catalogues: Mapping[str, Catalogue] | None = None) -> None:
        """Serve these mounts from now on. What is no longer mounted, or mounted differently, gets no more calls and is
        stopped when those that it has are done. `catalogues`: the last ones known, for mounts that have not been
        started yet."""
        before, self._mounts = self._mounts, {mount.name: mount for mount in mounts}
        self._definitions = {name: compute_mount_digest(mount) for name, mount in self._mounts.items()}
        for name in before:
            now = self._mounts.get(name)
            if now is not None and is_same_process(before[name], now):
                for instance in (one for key, one in self._instances.items() if key[0] == name):
                    instance.mount = now
            elif before[name] != now:
                self._catalogues.pop(name, None)
                self._retire_instances(name)
        for name, catalogue in (catalogues or {}).items():
            if name in self._mounts:
                self._catalogues.setdefault(name, catalogue)

    def get_status(self, mount: str) -> UpstreamStatus:
        catalogue = self._catalogues.get(mount)
        if self._find_mount(mount).disabled:
            return UpstreamStatus(UpstreamState.DISABLED, catalogue=catalogue)
        instances = [one for (name, _), one in self._instances.items() if name == mount]
        if not instances:
            return UpstreamStatus(UpstreamState.IDLE, catalogue=catalogue)
        best = min(instances, key=lambda one: RANK[one.state])
        return UpstreamStatus(best.state, best.reason, best.since, catalogue)

    async def get_catalogue(self, mount: str, caller: UpstreamCaller) -> Catalogue:
        if (known := self._catalogues.get(mount)) is not None:
            return known
        instance = self._find_instance(mount, caller)
        instance.hold()
        try:
            await instance.connect()
            with anyio.move_on_after(instance.mount.call_seconds):
                await instance.listed.wait()
        finally:
            instance.release()
        if (known := self._catalogues.get(mount)) is None:
            raise instance.build_away_refusal()
        return known

    async def call_tool(self, mount: str, tool: str, arguments: Arguments, caller: UpstreamCaller) -> WireResult:
        configured = self._find_mount(mount)
        shape, known = configured.tools.get(tool), self._catalogues.get(mount)
        params = {"name": tool, "arguments": dict(arguments)}
        limits = CallLimits(shape.seconds if shape and shape.seconds else configured.call_seconds)
        if isinstance(configured.target, HttpTarget) and known is not None:
            from mcp_server.upstreams.param_headers import build_param_headers

            limits = replace(limits, headers=build_param_headers(known, tool, arguments, shape, self.redact))
        return await self._call(mount, "tools/call", params, caller, limits)

    async def read_resource(self, mount: str, uri: str, caller: UpstreamCaller) -> WireResult:
        return await self._call(mount, "resources/read", {"uri": uri}, caller)

    async def get_prompt(
        self, mount: str, prompt: str, arguments: Mapping[str, str], caller: UpstreamCaller
    ) -> WireResult:
        return await self._call(mount, "prompts/get", {"name": prompt, "arguments": dict(arguments)}, caller)

    async def subscribe(self, mount: str, uri: str, caller: UpstreamCaller) -> None:
        await self._find_instance(mount, caller).subscribe(uri, caller.session)

    async def unsubscribe(self, mount: str, uri: str, caller: UpstreamCaller) -> None:
        self._find_instance(mount, caller).unsubscribe(caller.session, uri)

    def end_session(self, session: str) -> None:
        self._stop_instances(lambda _, instance: instance.session == session)
        for instance in self._instances.values():
            instance.unsubscribe(session)

    async def complete(self, mount: str, params: Mapping[str, Any], caller: UpstreamCaller) -> WireResult:
        return await self._call(mount, "completion/complete", params, caller)

    async def close(self) -> None:
        """Stop every server."""
        await self._parked.close()
        for instance in self._retired:
            self._end(instance.stop())
        self._stop_instances(lambda _key, _instance: True)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _call(
        self,
        mount: str,
        method: str,
        params: Mapping[str, Any],
        caller: UpstreamCaller,
        limits: CallLimits | None = None,
    ) -> WireResult:
        instance = self._find_instance(mount, caller)
        call = self._parked.take(mount, method, params, caller)
        try:
            if call is not None:
                return instance.add_note(method, await call.resume(caller))
            sent = {**params, "_meta": dict(caller.meta)} if caller.meta else params
            call = UpstreamCall(instance, method, sent, caller, limits or CallLimits(instance.mount.call_seconds))
            return instance.add_note(method, await call.run())
        except Parked as parked:
            assert call is not None
            self._parked.put(call, mount, params)
            raise parked.cause from None

    def _find_mount(self, mount: str) -> Mount:
        found = self._mounts.get(mount)
        if found is None:
            message = f"There is no server `{mount}` any more."
            raise Refusal(Problem(Code.UPSTREAM_AWAY, message, "Continue without it."))
        return found

    def _find_instance(self, mount: str, caller: UpstreamCaller) -> UpstreamInstance:
        configured = self._find_mount(mount)
        if configured.disabled:
            message = f"The user has disabled the server `{mount}`."
            raise Refusal(Problem(Code.UPSTREAM_AWAY, message, "Continue without it."))
        if caller.definition and caller.definition != self._definitions[mount]:
            message = f"The user has changed the server `{mount}` since this call was allowed, so nothing ran."
            raise Refusal(Problem(Code.UPSTREAM_AWAY, message, "Look at the tools there are now, then call again."))
        side = "" if caller.principal == self.owner else "other "
        key = (mount, side + SHARED_BY[configured.serve](caller))
        instance = self._instances.get(key)
        if instance is None:
            instance = self._instances[key] = self._build_instance(configured, caller)
        return instance

    def _build_instance(self, mount: Mount, caller: UpstreamCaller) -> UpstreamInstance:
        principal = caller.principal
        whose = "" if mount.serve is Serve.ALL else principal
        events = InstanceEvents(
            on_catalogue=lambda catalogue: self._take_catalogue(mount, catalogue),
            on_state=lambda: self.on_change(UpstreamChange(mount.name, "state")),
            on_updated=lambda uri: self.on_change(UpstreamChange(mount.name, "resource", uri, whose)),
        )
        known = self._catalogues.get(mount.name) or Catalogue()
        instance = UpstreamInstance(
            mount, lambda: self.open_link(mount, principal), self._slots, self.workspace, events, known
        )
        if mount.serve is Serve.SESSION:
            instance.session = caller.session
        return instance

    def _take_catalogue(self, mount: Mount, catalogue: Catalogue) -> None:
        now = self._mounts.get(mount.name)
        if now is not None and is_same_process(now, mount):
            self._catalogues[mount.name] = catalogue
            self.on_change(UpstreamChange(mount.name, "catalogue"))

    def _stop_instances(self, chosen: Callable[[tuple[str, str], UpstreamInstance], bool]) -> None:
        for key, instance in list(self._instances.items()):
            if chosen(key, instance):
                del self._instances[key]
                self._end(instance.stop())

    def _retire_instances(self, mount: str) -> None:
        """Give them no more calls, and stop each when it has none."""
        for key in [key for key in self._instances if key[0] == mount]:
            instance = self._instances.pop(key)
            self._retired.add(instance)
            self._end(instance.retire(), lambda instance=instance: self._retired.discard(instance))

    def _end(self, work: Coroutine[Any, Any, None], done: Callable[[], None] = lambda: None) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.add_done_callback(lambda _: done())


def is_same_process(one: Mount, other: Mount) -> bool:
    """True if they differ at most in how the server's tools look and count, so that it need not be started again."""
    return one == dataclasses.replace(
        other, tools=one.tools, result=one.result, changes=one.changes, prefixed=one.prefixed
    )
