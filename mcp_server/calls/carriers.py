"""How is a tool called through a carrier? An example to copy, and what was meant where it was written differently."""

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_server.model.menus import CARRIERS, META_TOOLS
from mcp_server.model.policy import Policy
from mcp_server.model.tools import Arguments, Schema, Tool
from mcp_server.policy.arguments import not_json

BEGINS = "menu_"
"""Every menu handle."""
MOST_SHOWN = 400
"""Characters of a call's own arguments that an example repeats; longer ones are left to who has them."""
SAMPLES: Mapping[str, Any] = {"string": "…", "boolean": False, "array": [], "object": {}}


def example(tool: Tool, arguments: Arguments | None = None, **where: str) -> str:
    """The whole call, with `menu` and `mode` where they belong."""
    given = dict(arguments) if arguments is not None else sample(tool.arguments)
    if len(json.dumps(given)) > MOST_SHOWN:
        given = sample(tool.arguments)
    carrier = "menu_read" if tool.hints.read_only else "menu_call"
    return f"{carrier} {json.dumps({'tool': tool.name, 'arguments': given, **where}, ensure_ascii=False)}"


def fitted(tool: Tool, given: Arguments, policy: Policy) -> Arguments:
    """As much of a call's arguments as the tool would take, and a sample of what they lack: what an example shows is to
    work as it is written."""
    if policy.unfit(tool.name, given) is None:
        return given
    found = sample(tool.arguments)
    if not_json(given) is not None:
        return found
    for name, value in given.items():
        trial = {**found, name: value}
        if takes(tool, name) and policy.unfit(tool.name, trial) is None:
            found = trial
    return found


def sample(schema: Schema) -> dict[str, Any]:
    """The arguments that cannot be left out, with something in their place."""
    return {name: _sample(schema["properties"].get(name, {})) for name in schema.get("required", ())}


def _sample(schema: Schema) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array" and schema.get("items", {}).get("type") == "string":
        return ["…"]
    return SAMPLES.get(str(kind), schema.get("minimum", 1) if kind in ("integer", "number") else "…")


def takes(tool: Tool, name: str) -> bool:
    return name in tool.arguments.get("properties", {})


def handle_in(tool: Tool, arguments: Arguments) -> str | None:
    """The menu handle that came with a call; also with that of a tool which has no argument of that name."""
    found = arguments.get("menu")
    if found is None or (takes(tool, "menu") and not tool.meta):
        return None
    return str(found) if takes(tool, "menu") or str(found).startswith(BEGINS) else None


def without(arguments: Arguments, name: str) -> Arguments:
    return {key: value for key, value in arguments.items() if key != name}


def straightened(given: Arguments, policy: Policy) -> Arguments:
    """A carrier's arguments with the handle and the mode beside the tool's own ones, and those neither within a copy of
    the whole nor written out as a text."""
    tool = policy.tools.get(str(given.get("tool")))
    inner = given.get("arguments")
    if isinstance(inner, str) and (read := _written_out(inner)) is not None:
        inner, given = read, {**given, "arguments": read}
    if tool is None or tool.name in (*META_TOOLS, *CARRIERS) or not isinstance(inner, Mapping):
        return given
    arguments = _unwrapped(tool, cast(Arguments, inner))
    mode = arguments.get("mode")
    if isinstance(mode, str) and policy.menus.get(mode) and not takes(tool, "mode") and given.get("mode", mode) == mode:
        arguments = without(arguments, "mode")
        given = {**given, "arguments": arguments, "mode": mode}
    handle = handle_in(tool, arguments)
    if handle is None or takes(tool, "menu") or given.get("menu", handle) != handle:
        return {**given, "arguments": arguments} if arguments is not inner else given
    return {**given, "arguments": without(arguments, "menu"), "menu": handle}


def _written_out(text: str) -> Arguments | None:
    """Many models and hosts write an object out as a text where another one is expected. Nothing is understood that two
    parsers would read differently."""
    try:
        found = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        return None
    return cast(Arguments, found) if isinstance(found, dict) else None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _unwrapped(tool: Tool, inner: Arguments) -> Arguments:
    """Semantic Kernel puts everything it was given to call with where a parameter is called `arguments`."""
    if inner.get("tool") != tool.name or takes(tool, "tool") or takes(tool, "arguments"):
        return inner
    within = inner.get("arguments")
    if isinstance(within, Mapping):
        return cast(Arguments, within)
    return {key: value for key, value in inner.items() if key not in ("tool", "arguments", "mode", "menu")}
