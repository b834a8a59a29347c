"""What the shipped menu `swe` holds, read from its file: whole, at profile normal, and for who only reads."""

from mcp_server.config.load import DATA
from mcp_server.model.posture import Profile
from tests.yaml_text import load_yaml
from tools.catalog import CATALOG

_LEAST = {tool.name: tool.profile for tool in CATALOG}
TOOLS: list[str] = load_yaml((DATA / "menus" / "swe.yaml").read_text())["tools"]

SWE = [name for name in TOOLS if Profile.NORMAL.covers(_LEAST[name])]
READING = [name for name in TOOLS if Profile.RESTRICTED.covers(_LEAST[name])]
