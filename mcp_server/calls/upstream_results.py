"""How much of another server's result is shown? No secret, and never more than a client can take; the rest as sent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from anyio import to_thread

from mcp_server.guards.redaction import Redactor
from mcp_server.guards.spill import Spill, spill_long_text
from mcp_server.model.results import Relayed
from mcp_server.model.tools import Tool

BYTES = ("data", "blob")
"""Keys of blocks whose values are base64: no text, and often megabytes."""
SHORTEST_CUT = 500
"""Characters that are shown of a text that no longer fits."""
MAX_STRUCTURED_CHARS = 200_000
"""Structured content of a tool with a schema for it: clients take a result without it for a fault."""
MAX_EXTRA_CHARS = 50_000
Block = Mapping[str, Any]


async def filter_relayed(ending: Relayed, tool: Tool, redactor: Redactor, spill: Spill) -> Relayed:
    shown = replace(
        ending,
        blocks=tuple(redact_block(block, redactor) for block in ending.blocks),
        data=redactor.redact_value(ending.data),
        extra=redactor.redact_value(ending.extra) if len(repr(ending.extra)) <= MAX_EXTRA_CHARS else {},
    )
    if measure_texts(shown) > tool.max_result_chars:
        shown = replace(shown, blocks=await to_thread.run_sync(spill_texts, shown.blocks, tool, spill))
    limit = tool.max_result_chars if tool.result is None else max(tool.max_result_chars, MAX_STRUCTURED_CHARS)
    if shown.data is None or len(text := json.dumps(shown.data, ensure_ascii=False)) <= limit:
        return shown
    return await to_thread.run_sync(spill_structured, shown, text, tool, spill)


def redact_block(block: Block, redactor: Redactor) -> Block:
    """Remove secrets from every text of a block; its bytes stay as they are."""
    raw = {key: block[key] for key in BYTES if isinstance(block.get(key), str)}
    rest: dict[str, Any] = redactor.redact_value({key: value for key, value in block.items() if key not in raw})
    resource = block.get("resource")
    if isinstance(resource, Mapping):
        rest["resource"] = redact_block(cast(Block, resource), redactor)
    # In the order in which the server sent them.
    return {
        key: raw[key] if key in raw else rest[key] for key in (*(key for key in block if key in raw or key in rest),)
    }


def measure_texts(ending: Relayed) -> int:
    return sum(len(text) for block in ending.blocks if (text := get_text(block)) is not None)


def get_text(block: Block) -> str | None:
    """Return the text of a text block or of an embedded resource."""
    resource = block.get("resource")
    text = cast(Block, resource).get("text") if isinstance(resource, Mapping) else block.get("text")
    return text if isinstance(text, str) else None


def spill_texts(blocks: tuple[Block, ...], tool: Tool, spill: Spill) -> tuple[Block, ...]:
    """Cut the texts that no longer fit, each with a note of the file that has the whole."""
    room, shown = tool.max_result_chars, list[Block]()
    for block in blocks:
        text = get_text(block)
        if text is not None and len(text) > room:
            text, _ = spill_long_text(text, max(room, min(SHORTEST_CUT + 1_000, len(text) - 1)), spill, tool.name)
            block = _replace_text(block, text)
        room = max(0, room - len(text or ""))
        shown.append(block)
    return tuple(shown)


def _replace_text(block: Block, text: str) -> Block:
    resource = block.get("resource")
    if isinstance(resource, Mapping):
        return {**block, "resource": {**cast(Block, resource), "text": text}}
    return {**block, "text": text}


def spill_structured(ending: Relayed, text: str, tool: Tool, spill: Spill) -> Relayed:
    """Keep structured content that is too long in a file. Where clients check it against a schema, the result then
    counts as failed, because a part of it would fit the schema no better than none."""
    if any(get_text(block) for block in ending.blocks) and tool.result is None:
        # Servers repeat their structured content as text, so the text has it, or the file with the text.
        return replace(ending, data=None)
    shown, _ = spill_long_text(text, tool.max_result_chars, spill, tool.name)
    failed = ending.failed or tool.result is not None
    return replace(ending, data=None, failed=failed, blocks=(*ending.blocks, {"type": "text", "text": shown}))
