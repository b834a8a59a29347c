"""Which arguments does a server want to see in HTTP headers? Those that its schema marks with `x-mcp-header`.

An argument that you fixed or hid, and a value that is a secret, stay out of the headers, which more programs log than
bodies. A server that insists on such a header refuses the call.
"""

from collections.abc import Callable
from typing import Any, cast

from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

from mcp_server.model.tools import Arguments
from mcp_server.model.upstreams import Catalogue, ToolShape


def build_param_headers(
    catalogue: Catalogue, tool: str, arguments: Arguments, shape: ToolShape | None, redact: Callable[[str], str]
) -> dict[str, str]:
    schema: Any = next((one.get("inputSchema") for one in catalogue.tools if one.get("name") == tool), None)
    if not isinstance(schema, dict) or find_invalid_x_mcp_header(schema) is not None:
        return {}
    private = {*shape.fix, *shape.hide} if shape else set[str]()
    marked = {path: name for path, name in x_mcp_header_map(schema).items() if path[0] not in private}
    shown = {path: name for path, name in marked.items() if not _is_secret(_find_value(arguments, path), redact)}
    return mcp_param_headers(shown, arguments)


def _find_value(arguments: Arguments, path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for key in path:
        value = cast(dict[str, Any], value).get(key) if isinstance(value, dict) else None
    return value


def _is_secret(value: Any, redact: Callable[[str], str]) -> bool:
    return isinstance(value, str) and redact(value) != value
