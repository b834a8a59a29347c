"""Is a line of shell taken for what it is, however it is written?"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_server.model.posture import Profile
from mcp_server.model.tools import READING, Effect
from tools.shell.classify import classify_line
from tools.shell.definitions import BASH
from tools.shell.verdicts import CommandKind

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "tables" / "commands.yaml").read_text())
BYPASS: dict[str, str] = TABLE["bypass"]


@pytest.mark.parametrize("line", TABLE["reads"])
def test_what_only_reads_is_known(line: str) -> None:
    assert classify_line(line).kind is CommandKind.READS
    demand = BASH.get_demand({"command": line})
    assert demand.effect in READING
    assert demand.confirm is None


@pytest.mark.parametrize("line", TABLE["builds"])
def test_what_builds_is_known(line: str) -> None:
    assert classify_line(line).kind is CommandKind.BUILDS
    demand = BASH.get_demand({"command": line})
    assert (demand.effect, demand.confirm) == (Effect.EXEC, None)


@pytest.mark.parametrize("line", BYPASS.values(), ids=BYPASS)
def test_a_hidden_command_is_asked_about(line: str) -> None:
    assert classify_line(line).kind is CommandKind.ASKED
    demand = BASH.get_demand({"command": line})
    assert demand.confirm
    assert demand.waivable
    assert demand.asked_below is Profile.TRUSTED


@pytest.mark.parametrize(("line", "because"), TABLE["because"].items())
def test_the_reason_names_the_part(line: str, because: str) -> None:
    assert classify_line(line).because == because
    assert BASH.get_demand({"command": line}).confirm == because


def test_typed_into_a_shell_that_stays_nothing_counts_as_reading() -> None:
    for how in ({"bash_id": "x"}, {"shell_id": "x"}, {"run_in_background": True}):
        assert BASH.get_demand({"command": "ls", **how}).effect is Effect.EXEC
