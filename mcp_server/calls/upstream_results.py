"""How much of another server's result is shown? No secret, and never more than a client can take; the rest as sent."""

import base64
import json
from collections.abc import Mapping
from typing import Any, cast

from anyio import to_thread
from msgspec.structs import replace

from mcp_server.guards.redaction import Redactor
from mcp_server.guards.spill import Spill, spill_long_text
from mcp_server.model.results import Relayed
from mcp_server.model.text import shorten_text
from mcp_server.model.tools import Tool

BYTES = ("data", "blob")
"""Keys of blocks whose values are base64: no text, and often megabytes."""
SHORTEST_CUT = 500
"""Characters that are shown of a text that no longer fits."""
MAX_STRUCTURED_CHARS = 200_000
"""Structured content of a tool with a schema for it: clients take a result without it for a fault."""
MAX_EXTRA_CHARS = 50_000
MAX_EVENT_BYTES = 1_000_000
"""Over HTTP and SSE: the SDK's client takes no event over 1 MiB, and the message is a little longer than its result."""
MAX_MESSAGE_BYTES = 5_000_000
"""All others: models take no picture over 5 MB, counted as it is sent."""
UNTYPED = "application/octet-stream"
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


async def keep_within_message(ending: Relayed, tool: Tool, transport: str, spill: Spill) -> Relayed:
    """Put what would make the message too long for the client into files: pictures, sound and other bytes."""
    taken = sum(map(count_bytes, ending.blocks))
    limit = get_message_limit(transport)
    if not taken or taken + measure_rest(ending) <= limit:
        return ending
    return replace(ending, blocks=await to_thread.run_sync(spill_bytes, ending, limit, tool, spill))


def get_message_limit(transport: str) -> int:
    return MAX_EVENT_BYTES if transport in ("http", "sse") else MAX_MESSAGE_BYTES


def measure_rest(ending: Relayed) -> int:
    """Measure what a result takes on the wire besides its bytes."""
    rest = [drop_bytes(block) for block in ending.blocks]
    return len(json.dumps([rest, ending.data, ending.extra], ensure_ascii=False).encode("utf-8", "replace"))


def count_bytes(block: Block) -> int:
    resource = block.get("resource")
    inside = count_bytes(cast(Block, resource)) if isinstance(resource, Mapping) else 0
    return inside + sum(len(block[key]) for key in BYTES if isinstance(block.get(key), str))


def drop_bytes(block: Block) -> dict[str, Any]:
    kept = {key: value for key, value in block.items() if key not in BYTES}
    resource = block.get("resource")
    return kept | ({"resource": drop_bytes(cast(Block, resource))} if isinstance(resource, Mapping) else {})


def spill_bytes(ending: Relayed, limit: int, tool: Tool, spill: Spill) -> tuple[Block, ...]:
    """Show bytes while there is room, and write the rest to files."""
    room, shown = limit - measure_rest(ending), list[Block]()
    for block in ending.blocks:
        if (taken := count_bytes(block)) > max(room, 0):
            shown.append(describe_spilled(block, tool, spill))
        else:
            room -= taken
            shown.append(block)
    return tuple(shown)


def describe_spilled(block: Block, tool: Tool, spill: Spill) -> Block:
    """Write the bytes of a block to a file, and return a text that names it in place of them."""
    resource = block.get("resource")
    about = cast(Block, resource) if isinstance(resource, Mapping) else block
    encoded = next(about[key] for key in BYTES if isinstance(about.get(key), str))
    data, media_type = decode_bytes(encoded), shorten_text(str(about.get("mimeType") or UNTYPED))
    what = f"{media_type}, {len(data):,} bytes: too much for one message"
    try:
        text = f"[{what}. All of it is in {spill.keep_bytes(data, media_type, tool.name)}, for a day.]"
    except OSError as error:
        text = f"[{what}, and it could not be kept ({error.strerror or error}).]"
    if about is block:
        return {"type": "text", "text": text}
    part = {key: value for key, value in about.items() if key not in BYTES}
    return {**block, "resource": {**part, "mimeType": "text/plain", "text": text}}


def decode_bytes(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded)
    except ValueError:
        return encoded.encode("utf-8", "replace")  # no base64, as a server that breaks the protocol may send
