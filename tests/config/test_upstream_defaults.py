"""Does a server with a state of its own get an instance per session, however it is started?"""

import pytest

from mcp_server.config.upstream_defaults import find_default_serve
from mcp_server.model.upstreams import HttpTarget, Serve, StdioTarget


@pytest.mark.parametrize(
    ("line", "serve"),
    [
        ("npx @playwright/mcp", Serve.SESSION),
        ("npx -y @playwright/mcp@latest --headless", Serve.SESSION),
        ("/usr/local/bin/mcp-server-playwright --headless", Serve.SESSION),
        ("docker run --rm -i mcp/playwright:1.2", Serve.SESSION),
        ("uvx browser-use[cli]==0.5 --mcp", Serve.SESSION),
        ("npx -y @modelcontextprotocol/server-memory", Serve.PRINCIPAL),
        ("npx -y @modelcontextprotocol/server-filesystem /srv/playwright", Serve.PRINCIPAL),
        ("uvx mcp-server-git", Serve.PRINCIPAL),
    ],
)
def test_default(line: str, serve: Serve) -> None:
    assert find_default_serve(StdioTarget(tuple(line.split()))) is serve


def test_an_address_says_nothing() -> None:
    assert find_default_serve(HttpTarget("https://a.example/@playwright/mcp")) is Serve.PRINCIPAL
