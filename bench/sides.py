"""What is measured? Our server and the bare one, started the same way with the same tools."""

import json
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import catalogue, messages
from bench.pipes import ServerPipe
from bench.processes import find_free_port, run_listening

ROOT = Path(__file__).parents[1]
WORK = ROOT / "bench" / ".cache" / "work"
"""On the disk of the checkout, because a ledger in memory would not be durable."""
META_TOOLS = 6


@dataclass(frozen=True)
class Side:
    """One of the two servers."""

    name: str
    bare: bool

    @property
    def folder(self) -> Path:
        folder = WORK / self.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def argv(self, listed: int, http: tuple[str, int] | None = None) -> list[str]:
        """Build the command of a server that lists this many tools."""
        where = [] if http is None else ["--http", f"{http[0]}:{http[1]}"]
        if self.bare:
            return [sys.executable, "-m", "bench.bare", "--tools", str(get_tools_file(listed)), *where]
        count = listed - META_TOOLS
        menus = self.folder / f"menus-{count}"
        menus.mkdir(exist_ok=True)
        (menus / f"{catalogue.MODE}.yaml").write_text(catalogue.render_menu(count))
        workspace = self.folder / "workspace"
        workspace.mkdir(exist_ok=True)
        own_options = ["--count", str(count), "--menus", str(menus), "--workspace", str(workspace)]
        return [sys.executable, "-m", "bench.ours", *own_options, *where, *(["--no-auth"] if http else [])]

    def pipe(self, listed: int) -> ServerPipe:
        return ServerPipe(self.argv(listed), self.folder / "stdio.log")

    @contextmanager
    def served(self, listed: int) -> Generator[tuple[str, int], None, None]:
        address = ("127.0.0.1", find_free_port())
        with run_listening(self.argv(listed, address), address, self.folder / "http.log"):
            yield address


OURS, BARE, TWIN = Side("ours", False), Side("bare", True), Side("twin", True)
"""The twin is a second bare server: the two together show how much of a difference is noise."""


def get_tools_file(listed: int) -> Path:
    return WORK / f"tools-{listed}.json"


def prepare(first: Side, listed: int) -> None:
    """Let both sides serve exactly the same tools: the bare server gets the list that ours shows."""
    WORK.mkdir(parents=True, exist_ok=True)
    if first.bare:
        tools: list[dict[str, Any]] = catalogue.build_listed_tools(listed)
    else:
        with first.pipe(listed) as pipe:
            pipe.open()
            tools = pipe.ask(messages.build_request(1, "tools/list"))[1]["result"]["tools"]
        if len(tools) != listed:
            raise RuntimeError(f"our server lists {len(tools)} tools instead of {listed}")
    get_tools_file(listed).write_text(json.dumps(tools))


def clear() -> None:
    """Start from an empty workspace, so that one run's ledger does not slow the next."""
    shutil.rmtree(WORK, ignore_errors=True)
