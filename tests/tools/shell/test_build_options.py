"""Which options of build and test tools run something other than the project's own code?"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.shell.classify import classify_line
from tools.shell.verdicts import CommandKind

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "tables" / "shell_starters.yaml").read_text())


@pytest.mark.parametrize("line", TABLE["unasked"])
def test_what_runs_the_projects_own_code_runs_unasked(line: str) -> None:
    assert classify_line(line).because == ""


@pytest.mark.parametrize(("line", "because"), TABLE["asks"].items())
def test_what_runs_something_that_the_line_names_asks(line: str, because: str) -> None:
    verdict = classify_line(line)
    assert verdict.kind is CommandKind.ASKED
    assert because in verdict.because
