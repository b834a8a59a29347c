"""What the tests of mounted servers stand on: the real processes, the port over them, and a client that records."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.choose import SandboxChooser
from mcp_server.guards.processes.commands import ChildRegistry, CommandHost
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.model.destinations import Destinations
from mcp_server.model.processes import ProcessLimits
from mcp_server.model.upstreams import (
    HttpTarget,
    HttpTransport,
    Mount,
    ProtocolEra,
    StdioTarget,
    UpstreamCaller,
    UpstreamChange,
)
from mcp_server.upstreams.links import LinkOpener, build_upstreams
from mcp_server.upstreams.servers import UpstreamServers

SERVERS = Path(__file__).parent / "servers"
OWNER = "owner"
VARIABLES = {**os.environ, "PYTHONPATH": str(SERVERS.parents[2])}
"""A script in `servers/` may import another."""


@dataclass
class Recorder:
    """A client that answers questions as it was told to, and records what it was asked and told."""

    name: str = "recorder"
    abilities: Collection[str] = ()
    answers: Mapping[str, Any] = field(default_factory=lambda: {"action": "accept", "content": {}})
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    logged: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    progressed: list[tuple[float, float | None, str | None]] = field(
        default_factory=list[tuple[float, float | None, str | None]]
    )
    ended: list[str] = field(default_factory=list[str])
    carried: Collection[str] = ()

    def can(self, what: str) -> bool:
        return what in self.abilities

    def get_note(self, key: str) -> str:
        return ""

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        self.asked.append((method, params))
        return self.answers

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        return {key: await self.request(key, *question) for key, question in questions.items()}

    async def announce_change(self, what: str, uri: str = "") -> None:
        raise AssertionError("a server announces nothing to a client")

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        self.logged.append((level, data))

    async def end_elicitation(self, elicitation: str) -> None:
        self.ended.append(elicitation)

    async def note_progress(self, done: float, /, total: float | None = None, message: str | None = None) -> None:
        self.progressed.append((done, total, message))


def caller(client: Recorder | None = None, session: str = "s1", principal: str = OWNER) -> UpstreamCaller:
    client = client or Recorder()
    return UpstreamCaller(principal, session, client, client.note_progress)


def script(name: str, *words: str, **more: Any) -> Mount:
    """A mount of the script of that name in `servers/`."""
    argv = (sys.executable, str(SERVERS / f"{name}.py"), *words)
    return Mount(name=more.pop("called", name), slug=name.replace("_", "")[:14], target=StdioTarget(argv), **more)


@dataclass
class FarServer:
    """A server in a process of its own, over HTTP."""

    process: "subprocess.Popen[str]"
    port: int
    log: Path

    @classmethod
    def start(cls, log: Path, port: int = 0, name: str = "ordinary", who: str = "") -> "FarServer":
        words, variables = [sys.executable, str(SERVERS / f"{name}.py"), str(port)], {**VARIABLES, "WHO": who}
        with log.open("a") as errors:
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": errors, "text": True}
            process = subprocess.Popen(words, env=variables, start_new_session=True, **pipes)
        assert process.stdout is not None
        return cls(process, int(process.stdout.readline()), log)

    def mount(self, how: str, era: ProtocolEra = ProtocolEra.AUTO) -> Mount:
        url = f"http://127.0.0.1:{self.port}/{'mcp' if how == 'http' else 'sse'}"
        return Mount("ordinary", "ordinary", HttpTarget(url, HttpTransport(how)), era=era)

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@dataclass
class Ground:
    servers: UpstreamServers
    host: CommandHost
    logs: Path
    changes: list[UpstreamChange]


def build_host(folder: Path, home: Path | None = None) -> CommandHost:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    path = f"/usr/local/bin:/usr/bin:/bin:{Path(sys.executable).parent}"
    variables = {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(home or folder)}
    paths = HostPaths(work, folder, (), path, variables)
    return CommandHost(
        paths, Jail(work, ()), PathWatch(work, frozenset()), ProcessLimits(), ChildRegistry(), SandboxChooser(())
    )


@asynccontextmanager
async def grounded(folder: Path, *mounts: Mount) -> AsyncGenerator[Ground, None]:
    host = build_host(folder)
    opener = LinkOpener(host, folder / "logs", OWNER, Destinations())
    changes: list[UpstreamChange] = []
    servers = build_upstreams(opener, host.paths.workspace, changes.append)
    servers.set_mounts(mounts)
    try:
        yield Ground(servers, host, folder / "logs", changes)
    finally:
        await servers.close()
        await host.close()
