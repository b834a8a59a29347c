"""Where do the tests of this room get menus and tools from? The shipped ones, and tools made for the purpose."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_server.config.faults import ConfigFaults, FaultCollector
from mcp_server.config.load import DATA, ConfigFiles, load_config_files
from mcp_server.config.menus import ModeDrafts, load_mode_drafts
from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Ending
from mcp_server.model.tools import ACTING, Effect, Hints, Tool

SHIPPED = DATA / "menus"
MODE = {
    "name": "mine",
    "title": "My Own",
    "role": "You do one thing.",
    "goal": "It is done.",
    "offers": "One tool.",
    "when": "to try things out",
    "triggers": "[]",
    "tools": "[grep]",
    "remember": "Be brief.",
}


async def run(_context: Context, _arguments: Any) -> Ending:
    return Done("done")


def made(name: str, **changes: Any) -> Tool:
    tool = Tool(
        name=name,
        title=name,
        description=f"Does what {name} does.",
        arguments={"type": "object", "properties": {}},
        profile=Profile.RESTRICTED,
        effect=Effect.READ_LOCAL,
        hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
        stages=ACTING,
        run=run,
    )
    return replace(tool, **changes)


def shipped_drafts() -> ModeDrafts:
    return load_mode_drafts([SHIPPED], FaultCollector())


def shipped_tools() -> dict[str, Tool]:
    """One tool for each entry of the shipped menus."""
    return {entry.text: made(entry.text) for draft in shipped_drafts().modes for entry in draft.tools}


def mode_text(**changes: str) -> str:
    """A whole mode, in the order of `MODE`, each key on a line of its own from the second on."""
    order = ("name", "title", "role", "goal", "offers", "when", "triggers", "tools", "remember")
    return "# a mode\n" + "".join(f"{key}: {changes.get(key, MODE[key])}\n" for key in order)


def opened(*folders: Path, config: Path | None = None, tools: dict[str, Tool] | None = None) -> ConfigFiles:
    library = load_config_files([SHIPPED, *folders], config, shipped_tools() if tools is None else tools)
    assert isinstance(library, ConfigFiles), str(library)
    return library


def refused(*folders: Path, config: Path | None = None, tools: dict[str, Tool] | None = None) -> ConfigFaults:
    faults = load_config_files([SHIPPED, *folders], config, shipped_tools() if tools is None else tools)
    assert isinstance(faults, ConfigFaults)
    return faults
