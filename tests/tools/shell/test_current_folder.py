"""Is anybody asked about a line that cannot succeed?"""

import json
from pathlib import Path

import pytest

from tests.clients.pipe import pipe
from tests.clients.typed import typed

MISSING = (
    "nosuchprogram",
    "nosuchprogram --flag a.txt",
    "./nosuch.sh",
    "deep/nosuch",
    "nosuch | cat",
    "nosuch && ls",
    "LD_PRELOAD=x nosuch",
    "timeout 5 nosuch",
    "env nice -n 5 nosuch",
    "/usr/bin/nosuch a",
    "nosuch > x",
    "./plain.md",
    "bash nosuch.sh",
    "source ./nosuch",
    "cd nosuch && rm x",
    "cat nosuch && rm x",
    "rm",
    "rm -r nosuch",
    "mv nosuch x",
)
BROKEN = ('"unclosed', "if then", "ls | | cat", "echo $(ls", "for x in a; do ls")
ASKED = (
    "shopt -s extglob; ls !(a|b",
    "./fine.sh",
    "rm plain.md",
    "eval x",
    "nosuchprogram; ls",
    "x=$(nosuchprogram) true",
    "/nosuch/program",
    "rm -f nosuch",
    "nosuch || rm x",
    "rm nosuch > nosuch",
    "sh nosuch > nosuch",
    "nosuch & rm x",
    "rm nosuch plain.md",
    "touch x && rm x",
    "rm nosuch*",
    "mv plain.md fine.sh",
    "cd nosuch; rm x",
    "bash fine.sh",
    "rm $x",
    "PATH=deep nosuch && ls",
    "canary() { ls; }; canary && rm x",
)


@pytest.mark.parametrize("how", [{}, {"exec_dir": "deep"}], ids=["workspace", "deep"])
def test_a_program_that_does_not_exist_is_refused_before_anybody_is_asked(
    workspace: Path, home: Path, how: dict[str, str]
) -> None:
    (workspace / "deep").mkdir()
    for folder in (workspace, workspace / "deep"):
        (folder / "fine.sh").write_text("true\n")
        (folder / "fine.sh").chmod(0o755)
        (folder / "plain.md").write_text("text\n")
    with pipe(workspace, home, "--profile", "normal", "--mode", "swe") as one:
        one.hello()
        for line in MISSING:
            answer = one.call("bash", command=line, **how)["content"][0]["text"]
            assert answer.startswith("Error NOT_FOUND"), (line, answer)
        for line in BROKEN:
            answer = one.call("bash", command=line, **how)["content"][0]["text"]
            assert answer.startswith("Error INVALID_ARGUMENTS: bash cannot read the line"), (line, answer)
        for line in ASKED:
            answer = one.call("bash", command=line, **how)["content"][0]["text"]
            assert answer.startswith("Error APPROVAL_REQUIRED"), (line, answer)


EXPLAINED = {"nosuch && ls": "NOT_FOUND", "git push": "PROFILE_TOO_LOW", '"unclosed': "INVALID_ARGUMENTS"}


@pytest.mark.parametrize("line", EXPLAINED)
def test_explain_looks_where_the_server_would(workspace: Path, home: Path, line: str) -> None:
    said = typed(workspace, home, "explain", "bash", json.dumps({"command": line}), "--profile", "normal", "--json")
    assert (json.loads(said.out)["verdict"], json.loads(said.out)["code"]) == ("deny", EXPLAINED[line])


def test_explain_knows_the_modules_of_the_workspace(workspace: Path, home: Path) -> None:
    call = json.dumps({"command": "python -m shop.cli"})
    assert json.loads(typed(workspace, home, "explain", "bash", call, "--json").out)["verdict"] == "ask"
    (workspace / "src/shop").mkdir(parents=True)
    (workspace / "src/shop/cli.py").write_text("")
    assert json.loads(typed(workspace, home, "explain", "bash", call, "--json").out)["verdict"] == "allow"
