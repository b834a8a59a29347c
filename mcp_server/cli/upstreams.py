"""`menugate upstreams`: the MCP servers behind menugate."""

from mcp_server.cli.parser import CommandGroup, add_actions
from mcp_server.cli.upstream_approval import add_approve

EXAMPLES = """
menugate upstreams approve github   read what a server offers, and approve it
"""


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("upstreams", EXAMPLES, None))
    add_approve(actions)
