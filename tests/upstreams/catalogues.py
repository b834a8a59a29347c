"""What the servers of the search tasks offer, as recorded in tests/data/catalogues."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_server.model.menus import Menus
from mcp_server.model.tools import Tool
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.policy.upstream_tools import ToolBuilder, build_run
from tools.catalog import CATALOG

DATA = Path(__file__).parents[1] / "data" / "catalogues"
CATALOGUES: Mapping[str, Mapping[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))
}
NO_MENUS = Menus(())


def build_tools(server: str) -> tuple[Tool, ...]:
    """What menugate makes of a server's definitions, once they are approved."""
    builder = ToolBuilder(build_run, lambda _tool: None, frozenset(tool.name for tool in CATALOG))
    mount = Mount(server, server, StdioTarget((server,)))
    return builder.build_tools(mount, CATALOGUES[server]["tools"], approved=True)[0]


TOOLS: tuple[Tool, ...] = tuple(tool for server in CATALOGUES for tool in build_tools(server))
WRITTEN: Mapping[str, str] = {tool.name: tool.written or tool.name for tool in TOOLS}
