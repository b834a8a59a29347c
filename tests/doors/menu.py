"""What the shipped mode `swe` holds, at the profile that is usual and at the lowest one."""

import yaml

from mcp_server.law import DATA
from mcp_server.model.posture import Profile
from tools.catalog import CATALOG

SWE: list[str] = yaml.safe_load((DATA / "menus" / "swe.yaml").read_text())["tools"]
_LEAST = {tool.name for tool in CATALOG if tool.profile is Profile.RESTRICTED}
READING = [name for name in SWE if name in _LEAST]
