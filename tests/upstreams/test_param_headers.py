"""Which arguments become headers? Those that the server marks, but nothing that you fixed, hid or keep secret."""

import pytest

from mcp_server.model.upstreams import Catalogue, ToolShape
from mcp_server.upstreams.param_headers import build_param_headers

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "tenant": {"type": "string", "x-mcp-header": "Tenant"},
        "text": {"type": "string"},
    },
}
OFFERED = Catalogue(tools=({"name": "t", "inputSchema": SCHEMA},))


@pytest.mark.parametrize(
    ("arguments", "shape", "headers"),
    [
        ({"region": "eu", "text": "x"}, None, {"Mcp-Param-Region": "eu"}),
        ({"region": "eu", "tenant": "a"}, ToolShape(fix={"tenant": "a"}), {"Mcp-Param-Region": "eu"}),
        ({"region": "eu", "tenant": "a"}, ToolShape(hide=frozenset({"region"})), {"Mcp-Param-Tenant": "a"}),
        ({"region": "my s3cret", "tenant": "a"}, None, {"Mcp-Param-Tenant": "a"}),
        ({"text": "x"}, None, {}),
    ],
)
def test_headers(arguments: dict[str, str], shape: ToolShape | None, headers: dict[str, str]) -> None:
    made = build_param_headers(OFFERED, "t", arguments, shape, lambda text: text.replace("s3cret", "***"))
    assert made == headers


def test_an_unknown_tool_and_an_invalid_schema_have_none() -> None:
    invalid = Catalogue(tools=({"name": "t", "inputSchema": {"properties": {"a": {"x-mcp-header": "bad name"}}}},))
    for offered in (Catalogue(), invalid, Catalogue(tools=({"name": "t", "inputSchema": "text"},))):
        assert build_param_headers(offered, "t", {"a": "b"}, None, str) == {}
