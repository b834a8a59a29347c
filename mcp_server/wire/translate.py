"""How do our values look on the wire? Tools are translated once, at registration; endings, once per call."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from mcp_types import methods

from mcp_server.model.menus import CARRIERS, META_TOOLS, Menus
from mcp_server.model.results import Done, Ending, Picture, Problem, Question, Raw, Relayed
from mcp_server.model.tools import Tool
from mcp_server.wire.instructions import describe_menu_enter
from mcp_server.wire.revisions import COMPLETE, UNCACHED, Revision

ALWAYS = {"anthropic/alwaysLoad": True}
"""Keeps a tool loaded in hosts that defer tools behind a search of their own."""
LONG_RESULT = {"anthropic/maxResultSizeChars": 200_000}


def build_tool_entry(tool: Tool, menus: Menus) -> dict[str, Any]:
    """Build a tool's list entry, before the SDK removes what the protocol revision does not know."""
    meta = (ALWAYS if tool.name in (*META_TOOLS, *CARRIERS) else {}) | (LONG_RESULT if tool.large else {})
    meta |= tool.entry.get("_meta", {})
    return {
        "name": tool.name,
        "title": tool.title,
        "description": describe_tool(tool, menus),
        "inputSchema": build_input_schema(tool, menus),
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
        **({"outputSchema": tool.result} if tool.result is not None else {}),
        **tool.entry,
        **({"_meta": meta} if meta else {}),
    }


def describe_tool(tool: Tool, menus: Menus) -> str:
    """For `menu_enter`, name the modes it leads to."""
    return describe_menu_enter(tool.description, menus) if tool.name == "menu_enter" else tool.description


def build_input_schema(tool: Tool, menus: Menus) -> Mapping[str, Any]:
    """For `menu_enter`, offer the names as a choice; it also takes a number, a title or a trigger."""
    if tool.name != "menu_enter":
        return tool.offered
    names = {"type": "string", "enum": [mode.name for mode in menus]}
    return {**tool.arguments, "properties": {**tool.arguments["properties"], "mode": names}}


def prepare_tool(tool: Tool, menus: Menus, version: str) -> dict[str, Any]:
    """Return the tool exactly as the SDK would put it into that revision's `tools/list`; raises if the SDK would
    fail."""
    whole = {"tools": [build_tool_entry(tool, menus)], **COMPLETE, **UNCACHED}
    return methods.serialize_server_result("tools/list", version, whole)["tools"][0]


def find_wire_fault(tool: Tool) -> str | None:
    """Say why a tool of another server cannot be listed in some revision of the protocol; None if it can."""
    for revision in Revision:
        try:
            json.dumps(prepare_tool(tool, Menus(()), revision), allow_nan=False)
        except Exception as fault:  # whatever the SDK raises, the other tools must be listed
            return f"it cannot be listed in revision {revision}: {str(fault).splitlines()[0][:200]}"
    return None


def result_from_ending(ending: Ending) -> dict[str, Any]:
    """Turn an ending into a tool result. Nothing that a model can cause is ever a protocol error."""
    match ending:
        case Done():
            blocks = [_build_block(block) for block in ending.blocks]
            text = [_build_text_block(ending.text)] if ending.text or not blocks else []
            structured = (
                {"structuredContent": replace_half_surrogates(dict(ending.data))} if ending.data is not None else {}
            )
            return {"content": text + blocks, "isError": False, **COMPLETE, **structured}
        case Relayed():
            structured = {"structuredContent": ending.data} if ending.data is not None else {}
            extra = {"_meta": ending.extra} if ending.extra else {}
            content = [dict(block) for block in ending.blocks]
            whole = {"content": content, "isError": ending.failed, **structured, **extra}
            return {**replace_half_surrogates(whole), **COMPLETE}
        case Problem():
            about = replace_half_surrogates({"code": str(ending.code), **(ending.data or {})})
            return {
                "content": [_build_text_block(ending.text)],
                "isError": True,
                **COMPLETE,
                "_meta": {"menugate/refusal": about},
            }
        case Question():
            return {"content": [_build_text_block(ending.text)], "isError": True, **COMPLETE}


def replace_half_surrogates(value: dict[str, Any]) -> dict[str, Any]:
    """Return the same JSON with replacement characters for lone surrogates, which UTF-8 cannot represent."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() else json.loads(text.encode("utf-8", "replace"))


def _build_text_block(text: str) -> dict[str, Any]:
    # Python strings can hold a lone surrogate, UTF-8 cannot: send the replacement character.
    return {"type": "text", "text": text if text.isascii() else text.encode("utf-8", "replace").decode()}


def _build_block(block: Picture | Raw) -> dict[str, Any]:
    if isinstance(block, Raw):
        return replace_half_surrogates(dict(block.block))
    return {"type": "image", "data": base64.b64encode(block.data).decode(), "mimeType": block.media_type}
