"""Does the example on the page about servers work as printed, and does the page name every key?"""

import json
import os
import re
import shlex
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from mcp_server.cli.parser import build_parser
from mcp_server.config.upstream_schema import ENTRY, SHAPE
from mcp_server.model.upstreams import Serve
from tests.cli.conftest import Type, menugate, place
from tests.clients import warm
from tests.clients.clients import held, over_stdio, text
from tests.clients.served import command, environment
from tests.docs.test_pages import WITH_A_NAME, blocks, keeps, promised
from tests.upstreams.registry import serve_registry

__all__ = ["menugate", "place"]
PAGE = "upstreams.md"
TEXT = (Path(__file__).parents[2] / "docs" / PAGE).read_text()
ZONE = {"type": "string"}
TIME = [
    {"name": "get_current_time", "inputSchema": {"type": "object", "properties": {"timezone": ZONE}}},
    {
        "name": "convert_time",
        "inputSchema": {
            "type": "object",
            "properties": {"source_timezone": ZONE, "time": ZONE, "target_timezone": ZONE},
            "required": ["source_timezone", "time", "target_timezone"],
        },
    },
]
"""What the server of the example offers."""


@pytest.fixture
def printed(place: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's files, its secret, and a registry with a server which offers the same as the real one."""
    for kind, block in blocks(PAGE):
        if kind == "yaml" and (name := WITH_A_NAME.match(block)):
            (place / name[1]).parent.mkdir(exist_ok=True)
            (place / name[1]).write_text(block)
    # The programs that are installed with the tests come last.
    monkeypatch.setenv("PATH", f"{environment(home)['PATH']}:{sysconfig.get_path('scripts')}")
    words = command("secret", "set", "ISSUES_TOKEN")
    warm.run(words, environment(home), cwd=place, input=b"canary-5up3r", check=True)
    with serve_registry() as registry:
        registry.configure(home)
        registry.publish_wheel("mcp-server-time", "2026.10.19", tuple(TIME))
        yield place


def approve(menugate: Type) -> None:
    shown = json.loads(menugate("upstreams approve time --config menugate.yaml --json").out)
    said = menugate(f"upstreams approve time --config menugate.yaml --digest {shown['digest']}")
    assert said.code == 0, said.err


@pytest.mark.anyio
async def test_the_example_works_as_printed(printed: Path, home: Path, menugate: Type) -> None:
    said = await anyio.to_thread.run_sync(menugate, "check --config menugate.yaml")
    assert (said.code, "All valid" in said.out) == (0, True), said.out
    await anyio.to_thread.run_sync(approve, menugate)
    server = over_stdio(printed, home, "--config", str(printed / "menugate.yaml"))
    server.env = {**environment(home), "PATH": os.environ["PATH"]}
    async with held(server, "legacy") as client:
        with anyio.fail_after(60):
            while "time_from_utc" not in text(await client.call("menu_enter", mode="planning")):
                await anyio.sleep(0.1)
        seen = re.search(r"a model now sees `(\w+)`, `(\w+)` and `(\w+)`", " ".join(TEXT.split()))
        assert seen is not None
        assert (await client.names())[-3:] == list(seen.groups())
        tools = {tool.name: tool for tool in (await client.client.list_tools()).tools}
        assert set(tools["time_from_utc"].input_schema["properties"]) == {"time", "target_timezone"}


def test_what_the_page_shows_happens(printed: Path, menugate: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    approve(menugate)
    shown = [one for kind, block in blocks(PAGE) if kind == "console" for one in promised(block)]
    assert shown
    for line, output in shown:
        said = menugate(line).out
        assert keeps(output, said), said
    for line in [line for kind, block in blocks(PAGE) if kind == "sh" for line in block.splitlines()]:
        build_parser().parse_args(shlex.split(line.removeprefix("menugate ")))


def rows(head: str) -> set[str]:
    """The words in backticks in the first column of the table below a heading."""
    table = TEXT.partition(f"## {head}\n")[2].partition("| --- |")[2].partition("\n\n")[0]
    return {
        word
        for line in table.splitlines()
        for word in re.findall(r"`(\w+)`", line.split("|")[1:2][0] if "|" in line else "")
    }


def test_every_key_is_explained() -> None:
    assert rows("The keys of an entry") == set(ENTRY.keys)
    assert rows("Single tools") == set(SHAPE.keys)
    assert rows("Who shares a running server") == {str(serve) for serve in Serve}
