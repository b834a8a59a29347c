"""How do our values look on the wire? Tools are translated once, at registration; endings call by call."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcp_types import methods

from mcp_server.model.ending import Done, Picture, Problem, Question, Raw
from mcp_server.model.menu import CARRIERS, META_TOOLS, Menus
from mcp_server.model.tool import Tool

ALWAYS = {"anthropic/alwaysLoad": True}
"""Keeps a tool loaded in hosts that defer tools behind a search of their own."""
LONG_RESULT = {"anthropic/maxResultSizeChars": 200_000}


def listed(tool: Tool, menus: Menus) -> dict[str, Any]:
    """A tool as a list shows it, before the revision in use takes out what it does not know."""
    meta = (ALWAYS if tool.name in (*META_TOOLS, *CARRIERS) else {}) | (LONG_RESULT if tool.large else {})
    return {
        "name": tool.name,
        "title": tool.title,
        "description": described(tool, menus),
        "inputSchema": schema(tool, menus),
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
        **({"outputSchema": tool.result} if tool.result is not None else {}),
        **({"_meta": meta} if meta else {}),
    }


def described(tool: Tool, menus: Menus) -> str:
    """`menu_enter` names what is behind it: a model does not look behind a door it knows nothing about."""
    if tool.name != "menu_enter":
        return tool.description
    return tool.description + "; ".join(f"{mode.name} {mode.when}" for mode in menus) + "."


def schema(tool: Tool, menus: Menus) -> Mapping[str, Any]:
    """`menu_enter` shows the names as a choice, and takes a number, a title or a trigger as well."""
    if tool.name != "menu_enter":
        return tool.arguments
    names = {"type": "string", "enum": [mode.name for mode in menus]}
    return {**tool.arguments, "properties": {**tool.arguments["properties"], "mode": names}}


def prepared(tool: Tool, menus: Menus, version: str) -> dict[str, Any]:
    """The tool exactly as the SDK would put it into a `tools/list` of that revision; raises where it would fail."""
    whole = {"tools": [listed(tool, menus)], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return methods.serialize_server_result("tools/list", version, whole)["tools"][0]


def result(ending: Done | Problem | Question) -> dict[str, Any]:
    """An ending as a tool result. Nothing a model can cause is ever a protocol error."""
    match ending:
        case Done():
            blocks = [_block(block) for block in ending.blocks]
            text = [_text(ending.text)] if ending.text or not blocks else []
            structured = {"structuredContent": whole(ending.data)} if ending.data is not None else {}
            return {"content": text + blocks, "isError": False, "resultType": "complete", **structured}
        case Problem():
            about = {"code": str(ending.code), **whole(ending.data or {})}
            return {
                "content": [_text(ending.text)],
                "isError": True,
                "resultType": "complete",
                "_meta": {"menugate/refusal": about},
            }
        case Question():
            return {"content": [_text(ending.text)], "isError": True, "resultType": "complete"}


def whole(value: Any) -> Any:
    """The same without halves of surrogate pairs: strings in Python, and nothing that can be written in UTF-8.

    The names of files are full of them where somebody else's encoding was at work.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {whole(key): whole(one) for key, one in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [whole(one) for one in cast(Sequence[Any], value)]
    return value


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": whole(text)}


def _block(block: Picture | Raw) -> dict[str, Any]:
    if isinstance(block, Raw):
        return whole(block.block)
    return {"type": "image", "data": base64.b64encode(block.data).decode(), "mimeType": block.media_type}
