"""What the servers of the search tasks offer, as recorded in tests/data/catalogues."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_server.model.menus import Menus
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Ending
from mcp_server.model.tools import EVERY_STAGE, Effect, Tool

DATA = Path(__file__).parents[1] / "data" / "catalogues"
CATALOGUES: Mapping[str, Mapping[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))
}
NO_MENUS = Menus(())


async def _run(_ctx: object, _args: object) -> Ending:
    return Done("")


def build_tool(server: str, definition: Mapping[str, Any]) -> Tool:
    title = definition.get("title") or definition.get("annotations", {}).get("title") or definition["name"]
    reads = bool(definition.get("annotations", {}).get("readOnlyHint"))
    return Tool(
        name=f"{server}_{definition['name'].replace('-', '_')}"[:40],
        title=title,
        description=definition.get("description", ""),
        arguments=definition["inputSchema"],
        profile=Profile.NORMAL if reads else Profile.TRUSTED,
        effect=Effect.READ_LOCAL if reads else Effect.WRITE_LOCAL,
        stages=EVERY_STAGE,
        run=_run,
        written=f"{server}:{definition['name']}",
    )


TOOLS: tuple[Tool, ...] = tuple(
    build_tool(server, definition) for server, catalogue in CATALOGUES.items() for definition in catalogue["tools"]
)
WRITTEN: Mapping[str, str] = {tool.name: tool.written or tool.name for tool in TOOLS}
