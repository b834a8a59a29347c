"""How is a mounted server started in a sandbox? In that of commands, with a folder of its own for everything it keeps.

Commands get what their grant allows. A server gets what its entry in your menugate.yaml allows, for as long as it runs:
it reads the workspace and the machine's programs, and writes in its own folder, which is its home.
"""

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.network.network import build_program_proxy
from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.commands import CommandHost, spawn_child
from mcp_server.guards.processes.upstream import UpstreamNotStarted, UpstreamProgram
from mcp_server.guards.sandbox.access import ChildAccess, build_child_access, is_folder, is_there
from mcp_server.guards.sandbox.launch import LaunchSpec, Sandbox
from mcp_server.guards.sandbox.protected import ProtectedPaths
from mcp_server.guards.sandbox.proxy_socket import VARIABLES, Outlet, ProxiedChild, ProxySocket
from mcp_server.model.destinations import Destinations
from mcp_server.model.posture import Profile
from mcp_server.model.processes import MARK, Command
from mcp_server.model.results import Refusal
from mcp_server.model.tools import Demand, Effect

RUN_SECONDS = 30 * 86_400.0
"""A server runs for as long as it is used; this only bounds the processor time it may use."""


class MountWalls(Struct, frozen=True):
    """What a server may reach besides the machine's programs and the workspace, which it reads."""

    own: Path
    """Its own folder, where it may write."""
    write: tuple[str, ...] = ()
    """Folders, absolute or in the workspace."""
    hosts: Destinations | None = None
    """None: no network."""
    home: bool = False
    """Whether it reads the user's home."""
    shown: tuple[str, ...] = ()
    """What it runs from."""


async def start_in_walls(host: CommandHost, program: UpstreamProgram, walls: MountWalls) -> RunningChild:
    """Start the server in a sandbox, or raise `UpstreamNotStarted`; never without one."""
    sandbox = await host.chooser.choose_sandbox()
    if sandbox is None:
        reason = host.chooser.describe_faults() or "it is switched off"
        raise UpstreamNotStarted(f"its entry demands a sandbox, and none works here ({reason})")
    if walls.hosts is not None and not sandbox.leads_out:
        raise UpstreamNotStarted(f"its entry names hosts to reach, and the sandbox {sandbox.name} has no network")
    try:
        protected = await host.watch.get_protected_paths()
        access = build_mount_access(host, protected, walls, program)
        home = {} if walls.home else {"HOME": str(walls.own)}
        variables = {**program.variables, **home, MARK: str(os.getpid())}
        spec = LaunchSpec(program.argv, access, host.limits, RUN_SECONDS)
        if walls.hosts is None:
            return await spawn_child(host, sandbox.build_launch(spec), variables, "/", terminal=False, apart=True)
        return await start_with_network(host, sandbox, spec, variables, build_program_proxy(walls.hosts))
    except Refusal as refused:
        raise UpstreamNotStarted(refused.problem.message) from None


async def start_with_network(
    host: CommandHost, sandbox: Sandbox, spec: LaunchSpec, variables: dict[str, str], proxy: Outlet
) -> RunningChild:
    proxy_socket = ProxySocket.create()
    try:
        launch = sandbox.build_launch(replace(spec, proxy_socket=proxy_socket))
    except BaseException:
        proxy_socket.abandon()
        raise
    launch = replace(launch, variables={**launch.variables, **VARIABLES})
    child = await spawn_child(host, launch, variables, "/", terminal=False, apart=True)
    host.registry.run_in_background(serve_network(proxy_socket, proxy, child))
    return child


async def serve_network(proxy_socket: ProxySocket, proxy: Outlet, child: ProxiedChild) -> None:
    try:
        await proxy_socket.serve_child(proxy, child)
    finally:
        await proxy.close()


def build_mount_access(
    host: CommandHost, protected: ProtectedPaths, walls: MountWalls, program: UpstreamProgram
) -> ChildAccess:
    workspace = host.paths.workspace
    wanted = [Path(os.path.realpath(workspace / folder)) for folder in walls.write]
    for folder in wanted:
        if not is_folder(str(folder)):
            raise UpstreamNotStarted(f"the folder {folder}, in which it may write, does not exist")
        if folder != workspace and any(one.is_relative_to(folder) for one in (workspace, host.paths.home)):
            raise UpstreamNotStarted(f"no sandbox is left if it may write in {folder}; name folders in it")
    everywhere = workspace in wanted
    demand = Demand(Effect.WRITE_LOCAL if everywhere else Effect.READ_LOCAL, Profile.NORMAL)
    access = build_child_access(host.paths, protected, Profile.NORMAL, demand, Command(()), program.folder)
    inside = [str(folder) for folder in wanted if folder.is_relative_to(workspace)]
    outside = [str(folder) for folder in wanted if str(folder) not in inside]
    home = str(host.paths.home)
    return replace(
        access,
        network=walls.hosts is not None,
        emptied=tuple(one for one in access.emptied if not (walls.home and f"{home}/".startswith(f"{one}/"))),
        caches=tuple(outside),
        opened=() if everywhere else tuple(inside),
        shown=tuple(filter(is_there, (*walls.shown, *find_program_place(host, program)))),
        own=(str(walls.own),),
    )


def find_program_place(host: CommandHost, program: UpstreamProgram) -> list[str]:
    """The program itself may lie in your home, and its environment around it."""
    place = Path(program.argv[0]).parent
    if not any(str(place).startswith(f"{folder}/") for folder in host.paths.emptied):
        return []
    return [str(place.parent) if is_there(place.parent / "pyvenv.cfg") else program.argv[0]]
