"""Which tools reach beyond one mode? The way to other servers, the search for tools, and the names of secrets."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import ACTING, HINTS, WARMUP, Arguments, Demand, Effect, LazyFunction, RuleSubject, Tool


class RequestToolsArguments(TypedDict):
    query: NotRequired[Annotated[str, "What you want to do, in your own words", Is(shortest=1, longest=300)]]
    category: NotRequired[Annotated[str, "Only tools of this mode", Is(shortest=1, longest=200)]]
    tool_names: NotRequired[Annotated[list[str], "Show the whole schemas of these tools", Is(most_items=10)]]
    add: NotRequired[Annotated[bool, "Also add them to your list of tools until the run ends", Is(default=False)]]
    list_categories: NotRequired[Annotated[bool, "List every mode", Is(default=False)]]


REQUEST_TOOLS = Tool(
    name="request_tools",
    title="Find a tool",
    description=(
        "Find tools of any mode or server by what you want to do. Names the best ones with their modes, what they need "
        "and the call to make; `tool_names` shows whole schemas, and `add` puts these tools into your list. "
        'Example: {"query": "see who changed a line"}'
    ),
    arguments=build_schema(RequestToolsArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    stages=WARMUP | ACTING,
    run=LazyFunction("tools.integrations.tool_search:request_tools"),
    hints=HINTS[Effect.SESSION].adjust("a second identical call changes nothing", idempotent=True),
)


class ListSecretsArguments(TypedDict):
    pass


LIST_SECRETS = Tool(
    name="list_secrets",
    title="List the secrets",
    description=(
        "List the names of the secrets that the user stored for servers of this folder: where each may be used, and "
        "its last use. Never shows a value; menugate gives values to servers without showing them to you. Example: {}"
    ),
    arguments=build_schema(ListSecretsArguments),
    profile=Profile.NORMAL,
    effect=Effect.SESSION,
    stages=WARMUP | ACTING,
    run=LazyFunction("tools.integrations.secrets:list_secrets"),
    hints=HINTS[Effect.SESSION].adjust("it only looks up names", read_only=True, idempotent=True),
)


class McpToolArguments(TypedDict):
    command: Annotated[Literal["list_servers", "list_tools", "call_tool", "read_resource"], "What to do"]
    server: NotRequired[Annotated[str, "The server's name", Is(shortest=1, longest=200)]]
    options: NotRequired[Annotated[dict[str, Any], "`tool` and `arguments` to call, or `uri` to read"]]


def find_mcp_tool_demand(arguments: Arguments) -> Demand:
    if str(arguments.get("command", "")).startswith("list_"):
        return Demand(Effect.SESSION, Profile.NORMAL)
    return Demand(Effect.DELEGATE, Profile.TRUSTED)


MCP_TOOL = Tool(
    name="mcp_tool",
    title="Use another server",
    description=(
        "List other MCP servers and their tools, call a tool or read a resource of one, from any mode. Each call is "
        "checked like a direct one. "
        'Example: {"command": "call_tool", "server": "time", "options": {"tool": "now", "arguments": {}}}'
    ),
    arguments=build_schema(McpToolArguments),
    profile=Profile.NORMAL,
    effect=Effect.SESSION,
    stages=ACTING,
    run=LazyFunction("tools.integrations.servers:use_servers"),
    hints=HINTS[Effect.SESSION].adjust("what it calls may do anything", destructive=True, open_world=True),
    demand=find_mcp_tool_demand,
    subject=("command", RuleSubject.TEXT),
    timeout=900.0,
)

TOOLS = (MCP_TOOL, LIST_SECRETS, REQUEST_TOOLS)
