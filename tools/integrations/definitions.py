"""Which tools reach beyond one mode? The search for tools, and the names of secrets."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import ACTING, HINTS, WARMUP, Effect, LazyFunction, Tool


class RequestToolsArguments(TypedDict):
    query: NotRequired[Annotated[str, "What you want to do, in your own words", Is(shortest=1, longest=300)]]
    category: NotRequired[Annotated[str, "Only tools of this mode", Is(shortest=1, longest=200)]]
    tool_names: NotRequired[Annotated[list[str], "Show the whole schemas of these tools", Is(most_items=10)]]
    list_categories: NotRequired[Annotated[bool, "List every mode", Is(default=False)]]


REQUEST_TOOLS = Tool(
    name="request_tools",
    title="Find a tool",
    description=(
        "Find tools of any mode or server by what you want to do. Names the best ones with their modes, what they need "
        "and the call to make; `tool_names` shows whole schemas. "
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

TOOLS = (LIST_SECRETS, REQUEST_TOOLS)
