"""A person at a shell: types a command in a workspace of their own, and reads what it says."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mcp_server.cli.main import main
from tests.clients.served import state_home


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str


Type: TypeAlias = Callable[..., Said]


@pytest.fixture
def place(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace, with nothing around it that the person at this machine has set."""
    for name in ("MENUGATE_WORKSPACE", "MENUGATE_PROFILE", "MENUGATE_MODE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MENUGATE_STATE_HOME", str(state_home(home)))
    monkeypatch.chdir(workspace)
    return workspace


@pytest.fixture
def menugate(place: Path, capsys: pytest.CaptureFixture[str]) -> Type:
    """`menugate("audit tail", "-n", "3")`: the first word is taken apart as a shell would."""

    def typed(line: str, *more: str, **main_takes: Any) -> Said:
        capsys.readouterr()
        try:
            code = main([*shlex.split(line), *more], **main_takes)
        except SystemExit as end:
            code = int(str(end.code or 0))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return typed
