"""Where the children of these tests are started: a workspace with things to protect, and one sandbox."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.choose import SandboxChooser, find_sandboxes
from mcp_server.guards.processes.commands import ChildRegistry, CommandHost
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command, CommandResult, ProcessLimits, SandboxPolicy
from mcp_server.model.tools import Demand, Effect

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
SANDBOXES = ("bubblewrap", "landlock")
MEGABYTE = 1 << 20
SMALL = ProcessLimits(processes=64, memory=512 * MEGABYTE, file=50 * MEGABYTE)


def sandbox(name: str) -> Sandbox | None:
    """`MENUGATE_TEST_PATH` names further folders in which bubblewrap is looked for."""
    path = f"{SYSTEM_PATH}:{os.environ.get('MENUGATE_TEST_PATH', '')}"
    return next((one for one in find_sandboxes(path, Path("/nowhere")) if one.name == name), None)


def furnish(root: Path) -> Path:
    """A workspace, and a home beside it."""
    work = root / "work"
    for folder in ("work/.git/hooks", "work/.menugate", "work/src", "work/keys", "work/.vscode", "home/.ssh", "beside"):
        (root / folder).mkdir(parents=True)
    for name in (".git/config", ".git/hooks/x", ".menugate/state.db", ".env", "src/a.py", "keys/id_rsa", ".mcp.json"):
        (work / name).write_text("what-is-here\n")
    for name in (".ssh/id", ".gitconfig"):
        (root / "home" / name).write_text("what-is-here\n")
    return work


def shop(
    work: Path, box: Sandbox | None, limits: ProcessLimits = SMALL, want: SandboxPolicy = SandboxPolicy.PREFERRED
) -> CommandHost:
    state = work / ".menugate"
    variables = {"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8", "HOME": str(work.parent / "home")}
    ground = HostPaths(work, work.parent / "home", (state,), f"{SYSTEM_PATH}:{Path(sys.executable).parent}", variables)
    chooser = SandboxChooser((box,) if box else (), want)
    return CommandHost(
        ground, Jail(work, (state,)), PathWatch(work, frozenset({".menugate"})), limits, ChildRegistry(), chooser
    )


@asynccontextmanager
async def opened(work: Path, box: Sandbox | None, **more: object) -> AsyncGenerator[CommandHost, None]:
    made = shop(work, box, **more)  # type: ignore[arg-type]  # handed on
    try:
        yield made
    finally:
        await made.registry.close()


async def sh(
    made: CommandHost, line: str, profile: Profile = Profile.NORMAL, effect: Effect = Effect.EXEC
) -> CommandResult:
    """A line of bash, as a call at this profile may run it."""
    needed = Profile.NORMAL if profile.covers(Profile.NORMAL) else Profile.RESTRICTED
    processes = made.build_call_processes(Demand(effect, needed), profile)
    return await processes.run(Command(("bash", "-c", line), seconds=20.0))
