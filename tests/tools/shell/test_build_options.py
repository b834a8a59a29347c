"""Which options of build and test tools run something other than the project's own code, and which words become one?"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.shell import WordRole
from tests.yaml_text import load_yaml
from tools.shell.classify import classify_line
from tools.shell.known_commands import BUILDS, READS
from tools.shell.lines import read_line
from tools.shell.program_arguments import Fits, read_argument
from tools.shell.verdicts import CommandKind, NeedsApproval

TABLES = Path(__file__).parents[2] / "tables"
TABLE: dict[str, Any] = load_yaml((TABLES / "shell_starters.yaml").read_text())
COMMANDS: dict[str, Any] = load_yaml((TABLES / "commands.yaml").read_text())


@pytest.mark.parametrize("line", TABLE["unasked"])
def test_what_runs_the_projects_own_code_runs_unasked(line: str) -> None:
    assert classify_line(line).because == ""


@pytest.mark.parametrize(("line", "because"), TABLE["asks"].items())
def test_what_runs_something_that_the_line_names_asks(line: str, because: str) -> None:
    verdict = classify_line(line)
    assert verdict.kind is CommandKind.ASKED
    assert because in verdict.because


PROGRAMS = [
    f"{name} {first}" for name in (*READS, *BUILDS) for first in ("", "a.txt", "test", "build", "run", "install")
]
LINES = [*TABLE["unasked"], *COMMANDS["reads"], *COMMANDS["builds"], *PROGRAMS]
WRITTEN = (
    *(
        "-x",
        "-pevil",
        "-o",
        "-e",
        "--output=x",
        "--eval=x",
        "--clear",
        "--pre=x",
        "--config=/tmp/x",
        "-exec",
        "-delete",
    ),
    *("-g", "-f/x", "--rootdir=/x", "--prefix=/x", "-C/x", "-t", "--global", "-I/x", "-r/x", "--require=x"),
)


def list_calls(line: str) -> Iterator[tuple[Fits, tuple[str, ...]]]:
    """List the programs of the line that the tables know, with their words."""
    read = read_line(line)
    for command in read.list_commands() if read else ():
        with suppress(NeedsApproval):
            words = tuple(read_argument(word) for word in command.words if word.role is WordRole.WORD)
            for table in (READS, BUILDS):
                # What `test` compares may be anything.
                if words and words[0] not in ("test", "[", "[[") and words[0] in table and table[words[0]](words[1:]):
                    yield table[words[0]], words[1:]


@pytest.mark.parametrize("pattern", ["*", "[a-z]*", "?", "-?", "--c*", "-x{p,q}evil", '"$x"', "$x"])
def test_what_may_become_an_option_fits_only_where_every_option_does(pattern: str) -> None:
    read = read_line(f"ls {pattern}")
    assert read
    unknown = read_argument(read.commands[0].words[1])
    for fits, words in {call for line in LINES for call in list_calls(line)}:
        for at in range(len(words) + 1):
            for ahead in ((), ("--",)):
                ahead_of_it, behind = (*words[:at], *ahead), words[at:]
                if fits((*ahead_of_it, unknown, *behind)):
                    refused = [one for one in WRITTEN if not fits((*ahead_of_it, one, *behind))]
                    assert not refused, f"{ahead_of_it} {pattern} {behind} fits, {refused} do not"
