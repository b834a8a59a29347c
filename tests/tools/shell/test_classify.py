"""Is a line of shell taken for what it is, however it is written?"""

from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.tools import READING, Effect
from tests.yaml_text import load_yaml
from tools.shell.classify import classify_line
from tools.shell.definitions import BASH
from tools.shell.verdicts import CommandKind

TABLE: dict[str, Any] = load_yaml((Path(__file__).parents[2] / "tables" / "commands.yaml").read_text())
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


@pytest.mark.parametrize("row", TABLE["folders"], ids=lambda row: f"{row['folder']}: {row['line']}")
def test_a_line_is_judged_in_the_folder_where_it_starts(row: dict[str, str]) -> None:
    assert classify_line(row["line"], row["folder"]).because == row["because"]
    demand = BASH.get_demand({"command": row["line"], "exec_dir": row["folder"]})
    assert demand.confirm == (row["because"] or None)


def test_typed_into_a_shell_that_stays_nothing_counts_as_reading() -> None:
    for how in ({"bash_id": "x"}, {"shell_id": "x"}, {"run_in_background": True}):
        assert BASH.get_demand({"command": "ls", **how}).effect is Effect.EXEC


@pytest.mark.parametrize(
    "line",
    [
        """x='; rm notes.md'; bash -c "ls $x\"""",
        """x='; rm notes.md'; timeout 5 bash -c "ls $x\"""",
        """x='1;system("rm notes.md")'; awk "BEGIN{y=$x}\"""",
        """x='b/;1e rm notes.md #'; echo a | sed "s/a/$x/\"""",
        """x=';'; y=-delete; z=-name; find src -exec true "$x" "$y" "$z" \\;""",
        "echo ';' | xargs -I{} find . -exec true {} -exec rm notes.md \\;",
        "x='1 rm -f'; echo notes.md | xargs -n $x cat",
        "echo -delete | xargs -I{} -L2 find src -name a.py",
        """x=otes.md; echo -delete | xargs -I "n$x" find src -name a.py notes.md""",
        """x='99 PATH'; read -n $x y <<< "$PWD/planted q"; ls""",
        """find 'BEGIN{system("rm notes.md")}#' -maxdepth 0 -exec awk {} Makefile \\;""",
        "true {PATH}>/dev/null; ls",
        "find . -path './src/*' -exec tee {} + </dev/null",
        """for f in *; do tee "src/$f.py" </dev/null; done""",
        """x=mcp.json; echo hi | tee ".$x\"""",
        """sed -i s/a/b/ ".en$x\"""",
        """cd "src$x" && . .venv/bin/activate""",
        "python3 -m venv --clear src",
        "python3 -m json.tool a.json notes.md",
    ],
)
def test_what_is_known_only_at_its_beginning_is_no_code_and_no_path(line: str) -> None:
    assert classify_line(line).kind is CommandKind.ASKED


EVERYDAY: dict[str, Any] = load_yaml((Path(__file__).parents[2] / "tables" / "everyday_lines.yaml").read_text())


@pytest.mark.parametrize("line", EVERYDAY["runs"])
def test_an_everyday_line_runs_unasked(line: str) -> None:
    assert classify_line(line).because == ""


def test_an_everyday_line_asks_only_for_a_reason_that_counts() -> None:
    reasons: dict[str, list[str]] = EVERYDAY["asks"]
    assert reasons.keys() <= {"leaves the workspace", "destroys or overwrites", "unknown code", "cannot be read"}
    asked = [line for lines in reasons.values() for line in lines]
    assert all(classify_line(line).kind is CommandKind.ASKED for line in asked), "move it to `runs`"
    assert len(asked) * 8 < len(EVERYDAY["runs"]) + len(asked)
