"""Do the servers that people have answer as told, and does none that is called inert run anything of the project?"""

import sysconfig
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.commands import CallProcesses, CommandHost
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.tools import Demand
from tests.tools.lsp.ground import LspWorkbench, bench, server
from tools.lsp.servers import BY_NAME

pytestmark = pytest.mark.anyio
SCRIPTS = Path(sysconfig.get_path("scripts"))
GREET = 'def greet(name: str) -> str:\n    """Say hello."""\n    return name\n\n\né = "😀"; x: int = greet("é")\n'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def asking(root: Path, name: str) -> AsyncGenerator[LspWorkbench]:
    root.mkdir(exist_ok=True)
    (root / "a.py").write_text(GREET)
    (root / "b.py").write_text("from a import greet\n\nprint(greet('x'))\n")
    async with bench(root, SCRIPTS) as one:
        one.profile = Profile.RESTRICTED if BY_NAME[name].inert else Profile.TRUSTED
        if not one.shop.build_call_processes(Demand(*LEAST), one.profile).find_program(name):
            pytest.skip(f"{name} is not installed: {BY_NAME[name].install}")
        yield one


LEAST: Any = ("read-local", Profile.RESTRICTED)
PYTHON = ("ty", "pyright-langserver", "jedi-language-server")


@pytest.mark.parametrize("name", PYTHON)
async def test_all_that_can_be_asked(tmp_path: Path, name: str) -> None:
    async with asking(tmp_path / "work", name) as one:

        async def told(command: str, path: str = "a.py", **arguments: Any) -> list[str]:
            lines = (await one.text(command, path, **arguments, server=name)).splitlines()
            assert f"`{name}` answered" in lines[-1]
            return lines[:-2]

        uses = ["a.py:1:5\tdef greet(name: str) -> str:", 'a.py:6:19\té = "😀"; x: int = greet("é")']
        uses += ["b.py:1:15\tfrom a import greet", "b.py:3:7\tprint(greet('x'))"]
        assert await told("goto_references", symbol="greet", line=6) == uses
        assert await told("goto_definition", symbol="greet", line=6) == uses[:1]
        assert await told("goto_definition", "b.py", symbol="greet", line=3) == uses[:1]
        assert "Say hello." in await told("hover_symbol", symbol="greet")
        assert "a.py:1:5\tfunction greet" in await told("document_symbols")
        assert any("function" in line and "greet" in line for line in await told("workspace_symbols", symbol="gree"))
        renamed = await told("rename_preview", symbol="greet", line=1, new_name="salute")
        assert "b.py:3:7\t+ print(salute('x'))" in renamed
        problems = await told("file_diagnostics")
        assert (problems == []) == (name == "jedi-language-server")
        assert all(line.startswith("a.py:6:") for line in problems)
        (one.root / "a.py").write_text("def greet(:\n")
        assert await told("file_diagnostics")
        (one.root / "b.py").write_text("\n\n\nfrom a import greet\n")
        (one.root / "a.py").write_text("\n" + GREET)
        moved = ["a.py:2:5\tdef greet(name: str) -> str:", 'a.py:7:19\té = "😀"; x: int = greet("é")']
        assert await told("goto_references", symbol="greet", line=2) == [*moved, "b.py:4:15\tfrom a import greet"]


class Open(CallProcesses, frozen=True):
    """Without a sandbox, so that whatever a server runs leaves its mark."""

    async def start(self, command: Command, terminal: bool = False) -> RunningChild:
        bare = CallProcesses(self.host, self.demand, Profile.UNRESTRICTED)
        return await bare.start(replace(command, read_only=False), terminal)


class OpenShop(CommandHost, frozen=True):
    def build_call_processes(
        self, demand: Demand, profile: Profile, pinned: Mapping[str, str] | None = None
    ) -> CallProcesses:
        return Open(self, demand, profile)


def trapped(one: LspWorkbench, canary: Path) -> LspWorkbench:
    """A project in which everything that could be run leaves a mark, looked at by a server that nothing holds back."""
    root = one.root
    python, shell = f"open({str(canary)!r}, 'a').write(__file__)\n", f'#!/bin/sh\necho "$0" >> {canary}\n'
    packages = root / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    programs = ["bin/python", "bin/python3", "bin/pip", "bin/ty", "bin/node"]
    for program in [
        *(f".venv/{one}" for one in programs),
        "node_modules/.bin/pyright",
        "python",
        "python3",
        "node",
        "uv",
    ]:
        path = root / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shell)
        path.chmod(0o755)
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = {root / '.venv' / 'bin'}\nversion = 3.11.2\n")
    for module in (
        "sitecustomize",
        "usercustomize",
        "json",
        "os",
        "typing",
        "site",
        "conftest",
        "setup",
        "pyrightconfig",
    ):
        (root / f"{module}.py").write_text(python)
        (packages / f"{module}.py").write_text(python)
    (packages / "x.pth").write_text(f"import os; {python}")
    settings = '{"venvPath": ".", "venv": ".venv", "pythonPath": ".venv/bin/python"}'
    (root / "pyrightconfig.json").write_text(settings)
    (root / ".vscode").mkdir()
    (root / ".vscode" / "settings.json").write_text('{"python.pythonPath": ".venv/bin/python", "ty.path": ["python"]}')
    (root / "pyproject.toml").write_text('[tool.ty.environment]\npython = ".venv"\n[tool.pyright]\nvenvPath = "."\n')
    one.shop = OpenShop(**structs.asdict(one.shop))
    return one


@pytest.mark.parametrize("name", [name for name in PYTHON if BY_NAME[name].inert])
async def test_nothing_of_the_project_is_run(tmp_path: Path, name: str) -> None:
    async with asking(tmp_path / "work", name) as one:
        trapped(one, tmp_path / "canary")
        for command in ("hover_symbol", "goto_references", "file_diagnostics", "workspace_symbols"):
            await one.text(command, symbol="greet", line=1, server=name)
        ran = (tmp_path / "canary").read_text() if (tmp_path / "canary").exists() else ""
        assert ran == ""


async def test_the_trap_shows_a_server_that_runs_something(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("greet = 1\n")
    folder = server(tmp_path / "bin", "ty", {})
    program = (folder / "ty").read_text()
    runs = f"def main() -> None:\n    os.system({str(root / '.venv/bin/python')!r})\n"
    (folder / "ty").write_text(program.replace("def main() -> None:\n", runs))
    async with bench(root, folder) as one:
        trapped(one, tmp_path / "canary")
        await one.text("hover_symbol", symbol="greet", line=1)
        assert ".venv/bin/python" in (tmp_path / "canary").read_text()
