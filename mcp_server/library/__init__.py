"""Files on disk become model values, or a refusal that names every fault."""

from mcp_server.library.configured import Approvals, Config
from mcp_server.library.coverage import LONGEST_NAME, is_covered, validate_tool_coverage
from mcp_server.library.faults import Fault, Faults
from mcp_server.library.loading import Library, load
from mcp_server.library.schemas import schemas

__all__ = [
    "LONGEST_NAME",
    "Approvals",
    "Config",
    "Fault",
    "Faults",
    "Library",
    "is_covered",
    "load",
    "schemas",
    "validate_tool_coverage",
]
