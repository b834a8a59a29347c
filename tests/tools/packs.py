"""Which tools does a pack bring? Those of the catalogue whose work lies in its folder."""

from mcp_server.model.tools import LazyFunction, Tool
from tools.catalog import CATALOG


def tools_of(*packs: str) -> tuple[Tool, ...]:
    found = tuple(
        tool for tool in CATALOG if isinstance(tool.run, LazyFunction) and tool.run.where.split(".")[1] in packs
    )
    assert found, packs
    return found
