"""Real repositories in a real workspace with the real guards, and git itself to compare with."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import jsonschema_rs

from mcp_server.guards.atomic import Trash
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.commands import build_command_host
from mcp_server.guards.processes.git_identity import find_hooks_folder, find_ignore_file, read_signature
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Processes
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.tools import Demand, Tool
from tests.tools.packs import tools_of
from tests.tools.workbench import Nowhere, StampMemory

TOOLS: dict[str, Tool] = {tool.name: tool for tool in tools_of("git")}
WHO = ("Ada Lovelace", "ada@example.org")
PATH = os.environ.get("PATH", os.defpath)
CLEAN = {
    "PATH": PATH,
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": WHO[0],
    "GIT_AUTHOR_EMAIL": WHO[1],
    "GIT_COMMITTER_NAME": WHO[0],
    "GIT_COMMITTER_EMAIL": WHO[1],
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
    "GIT_ALLOW_PROTOCOL": "file",
}


def git(folder: Path, *arguments: str | bytes, data: bytes | None = None, ok: bool = True) -> bytes:
    """Git as it is, with nobody's configuration."""
    words = ["git", "-c", "init.defaultBranch=main", "-c", "core.quotePath=false", *arguments]
    ran = subprocess.run(words, cwd=folder, env=CLEAN, input=data, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 0 or not ok, ran.stderr.decode()
    return ran.stdout


@dataclass
class GitPerson:
    paths: HostPaths
    who: tuple[str, str] | None = WHO

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        named = f"[user]\n\tname = {self.who[0]}\n\temail = {self.who[1]}\n" if self.who else ""
        (self.paths.home / ".gitconfig").write_text(named)
        return await asyncio.to_thread(read_signature, self.paths, repository)

    async def find_ignore_file(self, repository: str) -> str:
        return await asyncio.to_thread(find_ignore_file, self.paths, repository)

    async def find_hooks_folder(self, repository: str) -> str:
        return await asyncio.to_thread(find_hooks_folder, self.paths, repository)


@dataclass
class GitContext:
    """What of a context these tools may touch; anything else they would reach for is missing."""

    files: Files
    processes: Processes
    demand: Demand
    person: GitPerson
    stands: None = None
    hides: None = None


class GitWorkbench:
    """One workspace, in which any of the tools is called as the pipeline calls it."""

    def __init__(self, root: Path, home: Path) -> None:
        state = root / ".menugate"
        (state / "spill").mkdir(parents=True, exist_ok=True)
        (state / ".gitignore").write_text("*\n")
        self.root, self.state = root, state
        jail = Jail(root, (state,), (state / "spill",))
        self.files = WorkspaceFiles(jail, Trash(state / "trash"), StampMemory(), Nowhere())
        variables = {"PATH": PATH, "HOME": str(home)}
        self.shop = build_command_host(HostPaths(root, home, (state,), PATH, variables), jail)
        self.person = GitPerson(self.shop.paths)
        self.bare: Processes | None = None
        """A door in the place of the real one."""
        self._runner = asyncio.Runner()

    def only(self, sandbox: str) -> bool:
        """Use this sandbox and no other; False where it is not to be had here."""
        chooser = self.shop.chooser
        chooser.candidates = tuple(one for one in chooser.candidates if one.name == sandbox)
        return bool(chooser.candidates)

    def close(self) -> None:
        self._runner.run(self.shop.registry.close())
        self._runner.close()

    def call(self, name: str, profile: Profile = Profile.TRUSTED, yes: bool = False, **arguments: Any) -> Ending:
        """The schema, the profile, the demand, the person, the grant, the tool."""
        tool = TOOLS[name]
        jsonschema_rs.validate(dict(tool.arguments), arguments)
        demand = tool.get_demand(arguments)
        if not (profile.covers(tool.profile) and profile.covers(demand.profile)):
            return Problem(Code.PROFILE_TOO_LOW, name)
        settled = demand.asked_below is not None and profile.covers(demand.asked_below)
        if demand.confirm and not (yes or settled):
            return Problem(Code.APPROVAL_REQUIRED, demand.confirm)
        door = self.bare or self.shop.build_call_processes(demand, profile)
        given = GitContext(self.files.limit_to_grant(demand), door, demand, self.person)
        ending = self._runner.run(_ended(tool, cast(Context, given), arguments))
        ending.text.encode()  # what cannot be sent is no answer
        return ending

    def done(self, name: str, profile: Profile = Profile.TRUSTED, yes: bool = False, **arguments: Any) -> Done:
        ending = self.call(name, profile, yes, **arguments)
        assert isinstance(ending, Done), ending
        return ending

    def data(self, name: str, **arguments: Any) -> Mapping[str, Any]:
        data = self.done(name, **arguments).data
        assert data is not None
        return data

    def problem(self, name: str, profile: Profile = Profile.TRUSTED, yes: bool = False, **arguments: Any) -> Problem:
        ending = self.call(name, profile, yes, **arguments)
        assert isinstance(ending, Problem), ending
        return ending


async def _ended(tool: Tool, given: Context, arguments: Mapping[str, Any]) -> Ending:
    try:
        return await tool.run(given, arguments)
    except Refusal as refusal:
        return refusal.problem


def paths(told: Done) -> list[str]:
    assert told.data is not None
    return [one["path"] for one in told.data["files"]]


Opened: TypeAlias = Callable[[Path], GitWorkbench]
"""Makes a bench of a folder, and closes it after the test."""
