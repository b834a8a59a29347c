"""What does a server load that is only listed? Hosts start many, and call few."""

import sys
from pathlib import Path

import pytest

from tests.clients.pipe import pipe
from tests.clients.within import house

BEHIND = ("mcp_server.guards", "mcp_server.calls.pipeline", "mcp_server.health", "tree_sitter")
ELSEWHERE = ("mcp_server.wire.http", "mcp_server.wire.spans", "mcp_server.state.reader", "httpcore2")


def loaded(workspace: Path, home: Path, *called: str) -> set[str]:
    """Every module a server took in that was listed, and then called so."""
    log = home / "imports.txt"
    watched = ["sh", "-c", f'exec {sys.executable} -X importtime -m mcp_server serve "$@" 2>{log}', "serve"]
    with pipe(workspace, home, run=watched) as client:
        client.hello()
        assert client.names()
        assert not any(client.call(tool).get("isError") for tool in called)
        assert client.bye() == 0
    lines = [line for line in log.read_text().splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def among(modules: set[str], *names: str) -> list[str]:
    return [module for module in modules if any(f"{module}.".startswith(f"{name}.") for name in names)]


AT_ONCE = {"mcp_server.guards", "mcp_server.guards.own_memory"}
"""What a server needs before anything else: it hides its memory while it holds no secret yet."""


def test_a_list_needs_nothing_of_what_a_call_needs(workspace: Path, home: Path) -> None:
    modules = loaded(workspace, home)
    assert "mcp_server.compose" in modules
    assert set(among(modules, *BEHIND, *ELSEWHERE)) == AT_ONCE


def test_the_first_call_loads_what_is_behind_the_gate(workspace: Path, home: Path) -> None:
    modules = loaded(workspace, home, "menu_list")
    assert {"mcp_server.guards.jail", "mcp_server.calls.pipeline"} <= modules
    assert among(modules, *ELSEWHERE) == []


@pytest.mark.anyio
async def test_a_sandbox_that_is_missing_is_told_of_where_the_gate_stood_before(workspace: Path, home: Path) -> None:
    async with house(workspace, home) as one:
        assert "pipeline" in vars(one.pipeline), "over a network it does not wait for the first call"
        told: list[str] = []
        one.pipeline.missing = lambda: told.append("missing")
        one.pipeline.guards.commands.chooser.on_missing()
    assert told == ["missing"]
