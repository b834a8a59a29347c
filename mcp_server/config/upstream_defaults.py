"""Which servers keep a state of their own, such as a browser's page, so that each session needs an instance?

A table of packages by name. `serve` in an entry always wins; a server that is not in the table serves its principal.
"""

import re
from pathlib import PurePath

from mcp_server.model.upstreams import Serve, StdioTarget, Target

STATEFUL = frozenset(
    {
        # Browsers: pages, cookies, log-ins.
        *("@playwright/mcp", "mcp-server-playwright", "mcp/playwright", "@executeautomation/playwright-mcp-server"),
        *("@modelcontextprotocol/server-puppeteer", "mcp-server-puppeteer", "mcp/puppeteer"),
        *("chrome-devtools-mcp", "@browsermcp/mcp", "browser-use"),
        *("@browserbasehq/mcp", "@browserbasehq/mcp-server-browserbase"),
        # Shells and terminals: folders, variables, running programs.
        *("@wonderwhy-er/desktop-commander", "iterm-mcp", "tmux-mcp"),
        # Chains of thoughts.
        *("@modelcontextprotocol/server-sequential-thinking", "mcp-server-sequential-thinking"),
        "mcp/sequentialthinking",
    }
)
VERSION = re.compile(r"(?<=.)(@|==|~=|>=|:|\[).*")
"""What follows a package's name: `@latest`, `==1.2`, `:tag`, `[extra]`."""


def find_default_serve(target: Target) -> Serve:
    """Who shares an instance if the entry does not say."""
    if not isinstance(target, StdioTarget):
        return Serve.PRINCIPAL
    words = [name for word in target.argv for name in (VERSION.sub("", word), PurePath(word).name)]
    return Serve.PRINCIPAL if STATEFUL.isdisjoint(words) else Serve.SESSION
