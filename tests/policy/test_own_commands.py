"""Is a line that would speak for the person known as one, however it is written, and is no other taken for one?"""

import pytest

from mcp_server.cli.parser import build_parser
from mcp_server.policy.own_commands import ACTS, find_acting_command
from tools.catalog import READ_LINE


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("menugate approve k7f392qa", "approve"),
        ("/usr/local/bin/menugate --json profile trusted", "profile"),
        ("cd src && MenuGate.exe stop", "stop"),
        ("python3 -m mcp_server trust", "trust"),
        ("python3 -Im mcp_server.cli.main next", "next"),
        ("uv run --with x menugate mode build", "mode"),
        ("menugate doctor fix", "doctor"),
        ("menugate todos accept 3", "todos"),
        ("echo $(menugate pause", "pause"),
        ("a[0]=1 menugate approve X", "approve"),
        ("a+=1 menugate approve X", "approve"),
        ("menugate --workspace . approve X", "approve"),
        ("python mcp_server/__main__.py approve X", "approve"),
        ("python ./mcp_server approve X", "approve"),
        ("python3 /p/mcp_server/cli/main.py deny X", "deny"),
        ("coverage run -m mcp_server approve X", "approve"),
        ("coverage run mcp_server/__main__.py approve X", "approve"),
        ("python -m runpy mcp_server approve X", "approve"),
        ('python -c \'import mcp_server.cli.main as m; m.main(["approve", "X"])\'', "approve"),
        ("python3 -c 'from mcp_server.cli.main import main; main()' approve X", "approve"),
        ("uvx menugate@latest approve X", "approve"),
        ("pipx run menugate==1 approve X", "approve"),
        ("tmux new -d 'menugate approve X'", "approve"),
        ("systemd-run --user menugate approve X", "approve"),
        ("m=menugate; $m approve X", "approve"),
        ("alias m=menugate; m approve X", "approve"),
        ("alias m='menugate approve'; m X", "approve"),
        ('f() { menugate "$@"; }; f approve X', "$@"),
        ("menugate $x X", "$x"),
        ('"$(command -v menugate)" approve X', "approve"),
        ('ln -s "$(which menugate)" x && ./x approve X', "approve"),
        ("cp ~/.local/bin/menugate x; ./x next", "next"),
        ("which menugate; git log", None),
        ("python -m pytest tests/mcp_server", None),
        ("python -m ruff check mcp_server tests/approve", None),
        ("python -c 'import mcp_server; print(mcp_server.__file__)'", None),
        ("grep -rn 'from mcp_server.cli' approve", None),
        ("grep approve mcp_server/__main__.py", None),
        ('git commit -m "menugate approve: fix"', None),
        ("echo 'menugate approve X' >> notes.md", None),
        ("menugate status", None),
        ("menugate doctor", None),
        ("menugate todos list", None),
        ("echo menugate approve", None),
        ("grep approve menugate", None),
        ("python3 -m mcp_server_of_mine approve", None),
        ("python3 mcp_server/cli/main.py", None),
    ],
)
def test_which_of_them_the_line_would_run(line: str, command: str | None) -> None:
    assert find_acting_command(line, READ_LINE) == command


def test_every_command_says_whether_it_acts() -> None:
    (commands,) = [one for one in build_parser()._actions if one.choices is not None]
    assert set(ACTS) == set(commands.choices or ())


def test_a_command_that_acts_is_found_by_its_words_and_one_that_reads_is_not() -> None:
    for name, acts in ACTS.items():
        words = [name] if isinstance(acts, bool) else [f"{name} {deed}" for deed in sorted(acts)]
        for line in words:
            assert find_acting_command(f"env A=b menugate {line} ID", READ_LINE) == (name if acts else None)
        if not isinstance(acts, bool):
            assert find_acting_command(f"menugate {name} list", READ_LINE) is None
    assert find_acting_command("echo menugate approve ID", READ_LINE) is None


def test_of_a_line_that_is_not_understood_the_name_of_a_command_is_enough() -> None:
    for line in ("menugate approve ID; echo 'a", "x=$(; python3 -m mcp_server status; men'u'gate mode chat"):
        assert READ_LINE(line) is None
        assert find_acting_command(line, READ_LINE)
    assert find_acting_command("menugate status; echo 'a", READ_LINE) is None
    assert find_acting_command("approve; echo 'a", READ_LINE) is None
