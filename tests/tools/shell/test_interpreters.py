"""Does an interpreter run unasked only what the line shows, or what the workspace holds?"""

import posixpath
from pathlib import Path
from typing import Any

import pytest

from tests.tools.shell.house import bash, served
from tests.yaml_text import load_yaml
from tools.shell.classify import classify_line
from tools.shell.surroundings import Surroundings
from tools.shell.verdicts import CommandKind

TABLE: dict[str, Any] = load_yaml((Path(__file__).parents[2] / "tables" / "interpreters.yaml").read_text())


@pytest.mark.parametrize("line", TABLE["runs"])
def test_code_in_plain_sight_runs_unasked(line: str) -> None:
    assert classify_line(line).because == ""
    assert classify_line(line).kind is CommandKind.BUILDS


@pytest.mark.parametrize(("line", "because"), TABLE["asks"].items())
def test_code_that_the_line_does_not_show_asks(line: str, because: str) -> None:
    verdict = classify_line(line)
    assert verdict.kind is CommandKind.ASKED
    assert because in verdict.because


def find_kind(path: str) -> str:
    held: list[str] = TABLE["holds"]
    return "file" if posixpath.normpath(path) in held else ""


AROUND = Surroundings(lambda _: True, find_kind)


@pytest.mark.parametrize("row", TABLE["modules"], ids=lambda row: row["line"])
def test_a_module_of_the_workspace_is_a_file_of_it(row: dict[str, str]) -> None:
    folder = row.get("folder", ".")
    assert classify_line(row["line"], folder, AROUND).because == row.get("because", "")
    assert classify_line(row["line"], folder).kind is CommandKind.ASKED, "nobody has looked"


def test_a_module_of_the_workspace_runs_through_the_server_and_another_asks(workspace: Path, home: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "tool.py").write_text("print('own', 'tool')\n")
    with served(workspace, home, "--profile", "normal") as client:
        assert "own tool" in bash(client, "python3 -m tool", exec_dir="sub")
        begun = bash(client, "python3 -m tool", exec_dir="sub", run_in_background=True)
        assert not begun.startswith("Error"), begun
        assert "own tool" in bash(client, "cd sub && python3 -m tool")
        assert "own tool" in bash(client, "cd sub; python3 -m tool", bash_id="x")
        for line in ("python3 -m tool", "python3 -m http.server", "cd sub && rm tool.py && python3 -m tool"):
            assert "APPROVAL_REQUIRED" in bash(client, line)
        assert "APPROVAL_REQUIRED" in bash(client, "python3 -m http.server", bash_id="x")
        (workspace / "sub" / "tool.py").unlink()
        assert "APPROVAL_REQUIRED" in bash(client, "cd sub && python3 -m tool")
