"""Do the pages tell the truth? Their files are written, their commands typed, and what they promise is compared."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.cli.main import main
from mcp_server.cli.parser import build_parser
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.model.menus import Commands, Listing
from mcp_server.model.posture import NARROWEST_FIRST, Surface, format_value
from mcp_server.settings import read_settings
from tests.clients.served import state_home

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("approvals.md", "commands.md", "git.md", "hosts.md", "menus.md", "network.md", "posture.md", "project.md"),
    *("prompts.md", "record.md", "rules.md", "runs.md", "secrets.md", "upgrading.md"),
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_A_NAME = re.compile(r"# file: (\S+)\n")


def blocks(page: str) -> Iterator[tuple[str, str]]:
    for found in BLOCK.finditer((DOCS / page).read_text()):
        yield found[1], found[2]


def promised(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, and what stands below it."""
    for part in re.split(r"^\$ menugate ", text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield line, output


def keeps(output: str, said: str) -> bool:
    """`…` stands for anything, also for whole lines."""
    return re.fullmatch(".*".join(map(re.escape, output.strip().split("…"))), said.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_happens(
    page: str, workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MENUGATE_STATE_HOME", str(state_home(home)))
    for name in ("XDG_CONFIG_HOME", "MENUGATE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(workspace)
    tried = 0
    for kind, text in blocks(page):
        if kind == "yaml":
            name = WITH_A_NAME.match(text)
            assert name, f"a file without a name: {text}"
            (workspace / name[1]).parent.mkdir(exist_ok=True)
            (workspace / name[1]).write_text(text)
        elif kind == "console":
            for line, output in promised(text):
                main(shlex.split(line))
                said = capsys.readouterr().out
                assert keeps(output, said), f"$ menugate {line}\n{said}"
                tried += 1
    assert tried


@pytest.mark.parametrize("page", PAGES)
def test_every_other_command_on_a_page_is_understood(page: str) -> None:
    for kind, text in blocks(page):
        lines = [line for line in text.splitlines() if "menugate " in line] if kind == "sh" else []
        for line in lines:
            build_parser().parse_args(shlex.split(line.partition("menugate ")[2].removeprefix("-- menugate ")))
        if kind == "json":
            for server in servers(json.loads(text)):
                assert server["command"] == "menugate"
                build_parser().parse_args(server["args"])


def servers(file: dict[str, Any]) -> list[dict[str, Any]]:
    return list((file.get("mcpServers") or file["servers"]).values())


def test_the_table_of_hosts_is_the_table_in_use() -> None:
    found = load_configuration(read_settings({"workspace": str(DOCS)}, {}), bare=True)
    assert isinstance(found, Configuration)
    page = (DOCS / "hosts.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (masked|carried) \| (yes|no) \|$", page, re.MULTILINE)
    used = [(row.client, str(row.listing), "yes" if row.relists else "no") for row in found.library.hosts.rows]
    shown, known = {name for name, *_ in rows}, {name for name, *_ in used}
    menus, page_name = "menus/hosts.yaml", "docs/hosts.md"
    assert [f"`{name}` stands in {page_name} and not in {menus}" for name in sorted(shown - known)] == []
    assert [f"`{name}` stands in {menus} and not in {page_name}" for name in sorted(known - shown)] == []
    assert rows == used
    assert [f"| `{face}` |" in page for face in Listing] == [True] * len(Listing)


def test_the_hosts_that_get_commands_are_the_ones_in_use() -> None:
    found = load_configuration(read_settings({"workspace": str(DOCS)}, {}), bare=True)
    assert isinstance(found, Configuration)
    page = (DOCS / "hosts.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| `/[^`]*pause` \|$", page, re.MULTILINE)
    assert rows == [row.client for row in found.library.hosts.rows if row.commands is Commands.PERSON]


def test_a_broken_promise_is_noticed() -> None:
    assert keeps("a…\n…d", "a b\nc\nd")
    assert not keeps("a…\nd", "a b\nc")


def test_every_value_of_every_axis_is_explained() -> None:
    page = (DOCS / "posture.md").read_text()
    explained, ordered = rows_of_axes(page, "| axis | values |"), rows_of_axes(page, "| axis | order |")
    order = {axis: list(map(format_value, values)) for axis, values in NARROWEST_FIRST.items()}
    known = [(axis, word) for axis, words in order.items() for word in words]
    missing = [f"docs/posture.md does not explain `{word}`" for axis, word in known if word not in explained[axis]]
    assert missing == []
    assert ordered == order


def rows_of_axes(page: str, head: str) -> dict[str, list[str]]:
    """The words of the second column, by axis."""
    rows = page.partition(head)[2].partition("\n\n")[0]
    found = re.findall(r"^\| ([\w ]+) \| ([^|]+) \|", rows, re.MULTILINE)
    return {axis.lower().replace(" ", "_"): re.findall(r"`(\w+)`", words) for axis, words in found}


def test_every_surface_is_explained() -> None:
    page = (DOCS / "posture.md").read_text()
    rows = page.partition("| surface | who calls |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == [str(one) for one in Surface]
