"""What does a model see of the servers behind menugate, whichever mode it is in? What it could call in some mode."""

from collections.abc import Iterator, Mapping

from mcp_server.calls.tool_search import MAX_CHARS, RESERVED_CHARS, SearchPlace, list_offered_tools
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import format_count, quote_text, shorten_text
from mcp_server.model.tools import Arguments, Tool
from mcp_server.policy.upstream_names import RESOURCE
from mcp_server.policy.upstream_offers import find_resource

NONE = "No server is behind menugate here, or the user has approved none; `menugate upstreams list` shows the user."


def list_servers(place: SearchPlace) -> Ending:
    servers = {name: tools for name, tools in _group_tools(place).items() if tools}
    lines = [
        f"- {name}: {format_count(len(tools), 'tool')}, in {', '.join(_list_modes(tools, place))}"
        for name, tools in servers.items()
    ]
    data = [
        {"server": name, "tools": len(tools), "modes": _list_modes(tools, place)} for name, tools in servers.items()
    ]
    return Done("\n".join(lines) or NONE, {"servers": data})


def list_server_tools(server: str, place: SearchPlace) -> Ending:
    """List the tools of one server, as many as fit, and name the rest."""
    tools = _group_tools(place).get(server)
    if not tools:
        return _build_unknown_server(server, place)
    offered = list(list_offered_tools((tool for tool in tools if tool.is_listed), place))
    lines, left = list[str](), [get_own_name(found.tool) for found in offered]
    for found in offered:
        line = f"- {get_own_name(found.tool)}: {found.format_line().removeprefix('- ')}"
        if sum(map(len, lines)) + len(line) > MAX_CHARS - RESERVED_CHARS - sum(map(len, left)):
            break
        lines.append(line)
        left.remove(get_own_name(found.tool))
    if left:
        lines.append(f"More, whose schemas `request_tools` shows: {', '.join(left)}.")
    return Done("\n".join(lines) or "It has no tools.", {"server": server, "tools": [one.tool.name for one in offered]})


def find_server_tool(server: str, tool: str, place: SearchPlace) -> str | Problem:
    """Find a tool by the server's name for it, or by its name here."""
    tools = _group_tools(place).get(server)
    if not tools:
        return _build_unknown_server(server, place)
    named = next((one for one in tools if one.is_listed and tool in (get_own_name(one), one.name)), None)
    if named is None:
        message = f"the server {quote_text(shorten_text(server))} has no tool {quote_text(shorten_text(tool))} for you."
        return Problem(Code.UNKNOWN_TOOL, message, "`list_tools` names those that it has.")
    return named.name


def find_server_resource(server: str, uri: str, place: SearchPlace) -> tuple[str, Arguments] | Problem:
    """Find what a resource passes through, by its own address or by the one that it has here."""
    tools = _group_tools(place).get(server)
    if not tools:
        return _build_unknown_server(server, place)
    if not any(tool.name == f"{server}:{RESOURCE}" for tool in tools):
        message = f"the server {quote_text(shorten_text(server))} has no resources for you."
        return Problem(Code.NOT_FOUND, message, "Use its tools.")
    route = find_resource(uri, place.policy)
    arguments = route.arguments if route and route.tool.name == f"{server}:{RESOURCE}" else {"uri": uri}
    return f"{server}:{RESOURCE}", arguments


def get_own_name(tool: Tool) -> str:
    return (tool.written or "").partition(":")[2]


def _group_tools(place: SearchPlace) -> Mapping[str, list[Tool]]:
    """Collect the tools of each server that this place can call in some mode, and that no rule hides."""
    servers: dict[str, list[Tool]] = {}
    theirs = (tool for tool in place.policy.tools.values() if tool.written)
    for found in list_offered_tools(theirs, place):
        servers.setdefault((found.tool.written or "").partition(":")[0], []).append(found.tool)
    return servers


def _list_modes(tools: list[Tool], place: SearchPlace) -> list[str]:
    return list(dict.fromkeys(_find_mode_names(tools, place)))


def _find_mode_names(tools: list[Tool], place: SearchPlace) -> Iterator[str]:
    for tool in tools:
        yield from (mode.name for mode in place.policy.menus.find_modes_with(tool.name))


def _build_unknown_server(server: str, place: SearchPlace) -> Problem:
    known = list(_group_tools(place))
    message = f"there is no server {quote_text(shorten_text(server))} for you here."
    return Problem(Code.NOT_FOUND, message, f"The servers: {', '.join(known)}." if known else NONE)
