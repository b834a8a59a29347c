"""A real workspace with the real guards, and the shortest way from a tool's name to its ending."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import jsonschema_rs

from mcp_server.guards.atomic import Trash
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.jail import Jail
from mcp_server.guards.openat import Resolve, choose_resolver
from mcp_server.model.context import Context
from mcp_server.model.files import Files, Search, SearchResult, Stamp
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.tools import Demand, Tool
from tests.tools.packs import tools_of

TOOLS: dict[str, Tool] = {tool.name: tool for tool in tools_of("files", "fs")}


@dataclass
class StampMemory:
    stamps: dict[str, Stamp] = field(default_factory=dict[str, Stamp])

    def remember(self, path: str, stamp: Stamp) -> None:
        self.stamps[path] = stamp

    def recall(self, path: str) -> Stamp | None:
        return self.stamps.get(path)


@dataclass
class Nowhere:
    """None of these tools searches."""

    def grep(self, search: Search) -> SearchResult:
        raise AssertionError(search)

    glob = grep


@dataclass
class WorkbenchContext:
    """What of a context these tools may touch; anything else they would reach for is missing."""

    files: Files
    demand: Demand
    hides: None = None
    stands: None = None


class Workbench:
    def __init__(self, root: Path, resolve: Resolve | None = None) -> None:
        state = root / ".menugate"
        (state / "spill").mkdir(parents=True, exist_ok=True)
        jail = Jail(root, (state,), (state / "spill",), resolve=resolve or choose_resolver())
        self.root = root
        self.files = WorkspaceFiles(jail, Trash(state / "trash"), StampMemory(), Nowhere())

    def call(self, name: str, yes: bool = False, **arguments: object) -> Ending:
        """As the pipeline does it: the schema, the demand, the person, the grant, the tool."""
        tool = TOOLS[name]
        jsonschema_rs.validate(dict(tool.arguments), arguments)
        demand = tool.get_demand(arguments)
        if demand.confirm and not yes:
            return Problem(Code.APPROVAL_REQUIRED, demand.confirm)
        given = cast(Context, WorkbenchContext(self.files.limit_to_grant(demand), demand))
        try:
            ending = asyncio.run(_ended(tool, given, arguments))
        except Refusal as refusal:
            ending = refusal.problem
        assert isinstance(ending, Done | Problem)
        ending.text.encode()  # what cannot be sent is no answer
        return ending


async def _ended(tool: Tool, given: Context, arguments: Mapping[str, Any]) -> Ending:
    return await tool.run(given, arguments)


def text(bench: Workbench, name: str, yes: bool = False, **arguments: Any) -> str:
    ending = bench.call(name, yes, **arguments)
    assert isinstance(ending, Done), ending
    return ending.text


def code(bench: Workbench, name: str, yes: bool = False, **arguments: Any) -> Code:
    ending = bench.call(name, yes, **arguments)
    assert isinstance(ending, Problem), ending
    return ending.code


def next_offset(shown: str) -> int | None:
    _, found, rest = shown.rpartition("offset=")
    return int(rest.split(",")[0].split(")")[0]) if found else None
