"""How is a tool called through a carrier? Examples to copy, and the usual misspellings of such a call corrected."""

import json
import secrets
from collections.abc import Mapping
from typing import Any, cast

from mcp_server.model.menus import CARRIERS, META_TOOLS
from mcp_server.model.policy import Policy
from mcp_server.model.tools import Arguments, Schema, Tool
from mcp_server.policy.arguments import find_json_fault

HANDLE_PREFIX = "menu_"
MAX_EXAMPLE_CHARS = 400
"""An example repeats the call's own arguments up to this length; the caller still has longer ones."""
SAMPLES: Mapping[str, Any] = {"string": "…", "boolean": False, "array": [], "object": {}}


def format_example_call(tool: Tool, arguments: Arguments | None = None, **where: str) -> str:
    """Format the whole call, with `menu` and `mode` where they belong."""
    given = build_sample_arguments(tool.offered) if arguments is None else arguments
    example = {name: value for name, value in given.items() if name not in tool.fixed}
    if len(json.dumps(example)) > MAX_EXAMPLE_CHARS:
        example = build_sample_arguments(tool.offered)
    carrier = "menu_read" if tool.hints.read_only else "menu_call"
    return f"{carrier} {json.dumps({'tool': tool.name, 'arguments': example, **where}, ensure_ascii=False)}"


def fit_arguments(tool: Tool, arguments: Arguments, policy: Policy) -> Arguments:
    """Keep the arguments that the tool would accept, and fill in samples for the missing ones: an example must work
    exactly as shown."""
    if policy.unfit(tool.name, arguments) is None:
        return arguments
    example = build_sample_arguments(tool.offered)
    if find_json_fault(arguments) is not None:
        return example
    for name, value in arguments.items():
        trial = {**example, name: value}
        if has_argument(tool, name) and policy.unfit(tool.name, trial) is None:
            example = trial
    return example


def build_sample_arguments(schema: Schema) -> dict[str, Any]:
    """Build the required arguments, with a placeholder for each."""
    return {name: _build_sample_value(schema["properties"].get(name, {})) for name in schema.get("required", ())}


def _build_sample_value(schema: Schema) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array" and schema.get("items", {}).get("type") == "string":
        return ["…"]
    return SAMPLES.get(str(kind), schema.get("minimum", 1) if kind in ("integer", "number") else "…")


def has_argument(tool: Tool, name: str) -> bool:
    return name in tool.arguments.get("properties", {})


def find_menu_handle(tool: Tool, arguments: Arguments) -> str | None:
    """Find the menu handle that came with a call, even if the tool itself has no such argument."""
    handle = arguments.get("menu")
    if handle is None or (has_argument(tool, "menu") and not tool.meta):
        return None
    return str(handle) if has_argument(tool, "menu") or str(handle).startswith(HANDLE_PREFIX) else None


def drop_argument(arguments: Arguments, name: str) -> Arguments:
    return {key: value for key, value in arguments.items() if key != name}


def normalise_carrier_arguments(carrier_arguments: Arguments, policy: Policy) -> Arguments:
    """Move the handle and the mode from the tool's own arguments to the carrier's, and unwrap arguments that arrive as
    a copy of the whole call or as a JSON text."""
    tool = policy.tools.get(str(carrier_arguments.get("tool")))
    inner = carrier_arguments.get("arguments")
    if isinstance(inner, str) and (parsed := _parse_object_text(inner)) is not None:
        inner, carrier_arguments = parsed, {**carrier_arguments, "arguments": parsed}
    if tool is None or tool.name in (*META_TOOLS, *CARRIERS) or not isinstance(inner, Mapping):
        return carrier_arguments
    arguments = _unwrap_arguments(tool, cast(Arguments, inner))
    mode = arguments.get("mode")
    if (
        isinstance(mode, str)
        and policy.menus.by_name.get(mode)
        and not has_argument(tool, "mode")
        and carrier_arguments.get("mode", mode) == mode
    ):
        arguments = drop_argument(arguments, "mode")
        carrier_arguments = {**carrier_arguments, "arguments": arguments, "mode": mode}
    handle = find_menu_handle(tool, arguments)
    if handle is None or has_argument(tool, "menu") or carrier_arguments.get("menu", handle) != handle:
        return {**carrier_arguments, "arguments": arguments} if arguments is not inner else carrier_arguments
    return {**carrier_arguments, "arguments": drop_argument(arguments, "menu"), "menu": handle}


def _parse_object_text(text: str) -> Arguments | None:
    """Many models and hosts send an object as a JSON text inside another one. Reject what two parsers would read
    differently."""
    try:
        value = json.loads(text, object_pairs_hook=_require_unique_keys)
    except (ValueError, RecursionError):
        return None
    return cast(Arguments, value) if isinstance(value, dict) else None


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("duplicate key")
    return entries


def _unwrap_arguments(tool: Tool, inner: Arguments) -> Arguments:
    """Semantic Kernel puts everything that it was given to call with into a parameter named `arguments`."""
    if inner.get("tool") != tool.name or has_argument(tool, "tool") or has_argument(tool, "arguments"):
        return inner
    within = inner.get("arguments")
    if isinstance(within, Mapping):
        return cast(Arguments, within)
    return {key: value for key, value in inner.items() if key not in ("tool", "arguments", "mode", "menu")}


def make_session_handle() -> str:
    """It cannot be guessed, so any caller that has it is let into the session."""
    return HANDLE_PREFIX + secrets.token_urlsafe(16)
