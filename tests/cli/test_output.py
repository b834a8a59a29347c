"""Are colour and progress for eyes alone, and is nothing shown that a terminal would act on?"""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.cli import output
from mcp_server.model.text import escape_for_person
from mcp_server.settings import may_use_colours
from tests.clients.served import PATIENCE, command, environment


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@contextmanager
def watched() -> Generator[Terminal, None, None]:
    """Somebody looks on."""
    with redirect_stdout(Terminal()) as terminal, redirect_stderr(terminal):
        yield terminal


@pytest.mark.usefixtures("xterm")
def test_a_terminal_gets_colours() -> None:
    with watched() as eyes:
        output.say(("yes", "green"), " and ", ("no\x1b[5m", "red"))
    assert eyes.getvalue() == "\x1b[32myes\x1b[0m and \x1b[31mno\\u001b[5m\x1b[0m\n"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_can_be_declined(environment: dict[str, str], wanted: bool) -> None:
    assert may_use_colours(environment) is wanted


def test_who_declined_colours_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with watched() as eyes:
        output.say(("yes", "green"))
        output.print_table([("1", "a")], ("n", "b"))
    assert "yes" in eyes.getvalue()
    assert "\x1b" not in eyes.getvalue()


def test_progress_shows_how_far_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PROGRESS_SECONDS", 0.0)
    with watched() as eyes, output.show_progress("rows") as told:
        told(1500, 3000)
    assert eyes.getvalue() == "\rrows: 1,500 of 3,000 (50 %)\x1b[K\r\x1b[K"


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with output.show_progress("rows") as told:
        told(1500, 3000)
    assert capsys.readouterr() == ("", "")


@given(st.text())
def test_nothing_shown_moves_the_terminal(text: str) -> None:
    shown = escape_for_person(text)
    assert all(sign.isprintable() or sign in "\n\t" for sign in shown)
    assert text != shown or shown == text
    if text.isascii() and text.isprintable():
        assert shown == text


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1))
def test_columns_stand_below_each_other(rows: list[tuple[str, str]]) -> None:
    with redirect_stdout(io.StringIO()) as out:
        output.print_table([(first.replace("\n", " "), "|" + second.replace("\n", " ")) for first, second in rows])
    assert len({line.index("|", 0) for line in out.getvalue().split("\n")[:-1] if line.count("|") == 1}) <= 1


def test_a_page_outside_utf8_and_half_a_character_are_still_shown(place: Path, home: Path) -> None:
    (place / "ä.json").write_text('{"path": "\\ud800€"}')
    said = subprocess.run(
        command("call", "fs_file_info", "@ä.json"),
        env=environment(home) | {"PYTHONIOENCODING": "latin-1"},
        cwd=place,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert said.returncode == 1
    assert b"Error" in said.stderr and b"Traceback" not in said.stderr


def test_the_real_command_is_coloured_on_a_real_terminal(place: Path, home: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("menus"), env=environment(home) | {"TERM": "xterm"}, cwd=place, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # how a terminal says that nobody is left at the other end
        pass
    finally:
        os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert shown.startswith(b"\x1b[2mnumber")


def test_the_first_screen_is_there_at_once(home: Path) -> None:
    """`--help` loads none of what makes a start slow."""
    heavy = "import sys; from mcp_server.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    look = "print(sorted({'mcp', 'sqlite3', 'yaml', 'pydantic', 'asyncio', 'starlette'} & set(sys.modules)))"
    said = subprocess.run(
        [sys.executable, "-c", heavy + look],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert said.stdout.splitlines()[-1] == "[]"


@given(st.text(st.sampled_from(list("ab \t\n界🌈\x1b\u2028>|")), max_size=300), st.integers(20, 90))
def test_no_part_of_foreign_text_begins_a_row(text: str, width: int) -> None:
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv("COLUMNS", str(width))
        output.say_foreign(text, "  ", "> ")
    rows = out.getvalue().removesuffix("\n").split("\n")
    assert all(row.startswith(("  ", "> ", "+ ")) for row in rows)
    assert all(sum(2 if east_asian_width(sign) in "WF" else 1 for sign in row) <= width for row in rows)
    lines = "".join(row[2:] if row.startswith(("> ", "+ ")) else f"\n{row[2:]}" for row in rows)[1:]
    assert lines == "\n".join(line.expandtabs() for line in escape_for_person(text).split("\n"))
    for row, after in pairwise(rows):
        # A word goes on if neither row has a space there, and only one that is wider than a row is ever broken.
        goes_on = after[:2] != "  " and row[-1:] != " " and after[2:3] != " "
        assert after.startswith("+ ") is goes_on
        assert not goes_on or " " not in row[2:].strip(" ")
