"""A workspace, the real guards, and language servers on a search path: lsp_tool as the pipeline calls it."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
from msgspec.structs import replace

from mcp_server.calls.session_objects import ObjectRegistry, OwnedObject
from mcp_server.guards.atomic import Trash
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.commands import CommandHost, build_command_host
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.search.search import FileSearch
from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Processes
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.tools import Demand
from tests.tools.workbench import StampMemory
from tools.lsp.definitions import LSP

FAKE = Path(__file__).with_name("fake.py")


@dataclass
class LspContext:
    """What of a context the tool may touch."""

    files: Files
    demand: Demand
    processes: Processes
    belongings: OwnedObject
    told: list[str] = field(default_factory=list[str])

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append(f"{done:g}/{total:g} {message}")


@dataclass
class LspWorkbench:
    root: Path
    files: WorkspaceFiles
    shop: CommandHost
    keeping: ObjectRegistry
    profile: Profile = Profile.RESTRICTED
    session: str = "one"

    async def call(self, command: str, path: str = "a.py", **arguments: Any) -> Ending:
        """As the pipeline does it: the schema, the demand, the profile, the grant, the tool."""
        given = {"command": command, "path": path, **arguments}
        given = {name: value for name, value in given.items() if value is not None}
        jsonschema_rs.validate(dict(LSP.arguments), given)
        demand = LSP.get_demand(given)
        if not self.profile.covers(demand.profile):
            return Problem(Code.PROFILE_TOO_LOW, demand.profile)
        processes, belongings = (
            self.shop.build_call_processes(demand, self.profile),
            self.keeping.build_session_objects(self.session),
        )
        context = LspContext(self.files.limit_to_grant(demand), demand, processes, belongings)
        try:
            ending = await LSP.run(cast(Context, context), given)
        except Refusal as refusal:
            ending = refusal.problem
        ending.text.encode()  # what cannot be sent is no answer
        return ending

    async def text(self, command: str, path: str = "a.py", **arguments: Any) -> str:
        ending = await self.call(command, path, **arguments)
        assert isinstance(ending, Done), ending
        return ending.text

    @property
    def pids(self) -> list[int]:
        """Of the servers that run."""
        return [child.pid for child in self.shop.registry.children if child.code is None]


@asynccontextmanager
async def bench(root: Path, *folders: Path, elsewhere: bool = True) -> AsyncGenerator[LspWorkbench]:
    """`folders` come first on the search path; `elsewhere` keeps what the machine has on its own."""
    state = root / ".menugate"
    (state / "spill").mkdir(parents=True, exist_ok=True)
    jail = Jail(root, (state,), (state / "spill",))
    usual = os.environ["PATH"].split(os.pathsep) if elsewhere else []
    path = os.pathsep.join([*map(str, folders), *usual, "/usr/bin", "/bin"])
    variables = {"PATH": path, "HOME": str(Path.home())}
    shop = build_command_host(HostPaths(root, Path.home(), (state,), path, variables), jail)
    finder = FileSearch(jail, (state,))
    faults: list[BaseException] = []
    keeping = ObjectRegistry(lambda _, fault: faults.append(fault))
    one = LspWorkbench(root, WorkspaceFiles(jail, Trash(state / "trash"), StampMemory(), finder), shop, keeping)
    try:
        yield one
    finally:
        await keeping.close()
        left = one.pids
        await shop.registry.close()
        assert (left, faults) == ([], [])


def server(folder: Path, name: str, script: Mapping[str, Any]) -> Path:
    """A program of that name in a folder of its own, which follows the script."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(
        f"#!{Path(sys.executable).resolve()} -IS\nimport json\nSCRIPT = json.loads({json.dumps(script)!r})\n{body()}"
    )
    program.chmod(0o755)
    return folder


def body() -> str:
    """Without the line that declares what the script's own line gives."""
    text = FAKE.read_text()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("SCRIPT:"))


def patient(**seconds: float) -> Any:
    from tools.lsp.lsp import TIMEOUTS

    return replace(TIMEOUTS, **seconds)


SOURCE = "def greet(name):\n    return name\n\n\ngreet(greet)\n"


Started = Callable[..., AbstractAsyncContextManager[LspWorkbench]]


async def problem(one: LspWorkbench, command: str = "hover_symbol", **arguments: Any) -> Problem:
    given: dict[str, Any] = {"symbol": "greet", "line": 1, **arguments}
    ending = await one.call(command, **given)
    assert isinstance(ending, Problem), ending
    return ending


async def heard(one: LspWorkbench, **arguments: Any) -> list[Any]:
    given: dict[str, Any] = {"symbol": "greet", "line": 1, **arguments}
    text = await one.text("hover_symbol", **given)
    return json.loads(text[: text.rindex("\n\n[")])
