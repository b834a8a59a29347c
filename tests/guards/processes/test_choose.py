"""Is the first sandbox taken that holds, and is it said why none does?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from mcp_server.guards.processes import probe
from mcp_server.guards.processes.choose import SandboxChooser, find_bubblewrap
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.model.policy import SandboxState
from mcp_server.model.processes import SandboxPolicy

pytestmark = pytest.mark.anyio


@dataclass
class Rung:
    name: str


@dataclass
class Tried:
    """What a trial of each finds; no trial is made twice."""

    faults: dict[str, str]
    names: list[str] = field(default_factory=list[str])

    async def find_fault(self, sandbox: Sandbox) -> str:
        self.names.append(sandbox.name)
        return self.faults[sandbox.name]


def choose(
    monkeypatch: pytest.MonkeyPatch, faults: dict[str, str], want: SandboxPolicy = SandboxPolicy.PREFERRED
) -> tuple[SandboxChooser, Tried]:
    tried = Tried(faults)
    monkeypatch.setattr(probe, "find_fault", tried.find_fault)
    return SandboxChooser(tuple(cast(Sandbox, Rung(name)) for name in faults), want), tried


async def test_the_first_that_holds_is_chosen_and_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chooser, tried = choose(monkeypatch, {"one": "leaks", "two": "", "three": ""})
    assert chooser.get_sandbox_state() is SandboxState.THERE, "until it was tried"
    for _ in range(2):
        chosen = await chooser.choose_sandbox()
        assert chosen is not None
        assert chosen.name == chooser.name == "two"
    assert tried.names == ["one", "two"]
    assert await chooser.describe_sandbox() == "two (one: leaks)"


@pytest.mark.parametrize(
    ("want", "state", "says"),
    [
        (SandboxPolicy.PREFERRED, SandboxState.MISSING, "commands need the next higher profile"),
        (SandboxPolicy.REQUIRED, SandboxState.REFUSED, "commands are refused"),
    ],
)
async def test_where_none_holds_it_is_told_and_said(
    monkeypatch: pytest.MonkeyPatch, want: SandboxPolicy, state: SandboxState, says: str
) -> None:
    chooser, _ = choose(monkeypatch, {"one": "leaks"}, want)
    missing: list[str] = []
    chooser.on_missing = lambda: missing.append("told")
    assert await chooser.choose_sandbox() is None
    assert missing == ["told"]
    assert chooser.get_sandbox_state() is state
    said = await chooser.describe_sandbox()
    assert "one: leaks" in said
    assert says in said


async def test_who_wants_none_tries_none(monkeypatch: pytest.MonkeyPatch) -> None:
    chooser, tried = choose(monkeypatch, {"one": ""}, SandboxPolicy.OFF)
    assert await chooser.choose_sandbox() is None
    assert tried.names == []
    assert chooser.get_sandbox_state() is SandboxState.MISSING
    assert (await chooser.describe_sandbox()).startswith("switched off")


def test_bubblewrap_is_looked_for_where_programs_are(tmp_path: pytest.TempPathFactory) -> None:
    found = find_bubblewrap(str(tmp_path), Path("/nowhere"))
    assert found is None or found.program == "/usr/bin/bwrap"
