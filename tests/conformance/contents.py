"""Does every kind of content, log line and progress report reach the client? Tools that answer without asking."""

import base64
import struct
import zlib
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Picture, Problem, Raw
from mcp_server.model.tools import Tool
from tests.conformance.shape import fixture


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)
"""One red pixel."""

WAV = b"RIFF" + struct.pack("<I4s4sIHHIIHH4sI", 36, b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", 0)
"""No sound at all, in a whole file."""


def _embedded(uri: str, media_type: str, text: str) -> Raw:
    return Raw({"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": text}})


async def simple_text(_ctx: Context, _args: Any) -> Done:
    return Done("This is a simple text response for testing.")


async def image(_ctx: Context, _args: Any) -> Done:
    return Done("One red pixel:", blocks=(Picture(PNG, "image/png"),))


async def audio(_ctx: Context, _args: Any) -> Done:
    block = {"type": "audio", "data": base64.b64encode(WAV).decode(), "mimeType": "audio/wav"}
    return Done("A silent sound:", blocks=(Raw(block),))


async def embedded_resource(_ctx: Context, _args: Any) -> Done:
    block = _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    return Done("An embedded resource:", blocks=(block,))


async def multiple_content_types(_ctx: Context, _args: Any) -> Done:
    resource = _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return Done("Multiple content types test:", blocks=(Picture(PNG, "image/png"), resource))


async def error_handling(_ctx: Context, _args: Any) -> Problem:
    return Problem(Code.TOOL_FAILED, "This tool intentionally returns an error for testing")


async def with_logging(ctx: Context, _args: Any) -> Done:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.client.log("info", line)
    return Done("Three lines were logged.")


async def with_progress(ctx: Context, _args: Any) -> Done:
    for done in (0, 50, 100):
        await ctx.progress(done, 100)
    return Done("Progress was reported three times.")


async def trigger_tool_change(ctx: Context, _args: Any) -> Done:
    await ctx.client.announce_change("tools")
    return Done("Everyone who listens was told that the tools changed.")


async def trigger_prompt_change(ctx: Context, _args: Any) -> Done:
    await ctx.client.announce_change("prompts")
    return Done("Everyone who listens was told that the prompts changed.")


async def echo(_ctx: Context, args: Any) -> Done:
    return Done(f"Received: {dict(args)}")


SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "description": "mirrored into a header", "x-mcp-header": "Region"}},
    "required": ["region"],
    "additionalProperties": False,
}

TOOLS: tuple[Tool, ...] = (
    fixture("test_simple_text", "Answers with one line of text.", simple_text),
    fixture("test_image_content", "Answers with a picture.", image),
    fixture("test_audio_content", "Answers with a sound.", audio),
    fixture("test_embedded_resource", "Answers with an embedded resource.", embedded_resource),
    fixture("test_multiple_content_types", "Answers with text, picture and resource.", multiple_content_types),
    fixture("test_error_handling", "Always fails.", error_handling),
    fixture("test_tool_with_logging", "Logs three lines.", with_logging),
    fixture("test_logging_tool", "Logs three lines; silent for a client that asked for none.", with_logging),
    fixture("test_tool_with_progress", "Reports progress three times.", with_progress),
    fixture("test_reconnection", "Finishes on whatever stream it was asked on.", simple_text),
    fixture("test_trigger_tool_change", "Says that the tools changed.", trigger_tool_change),
    fixture("test_trigger_prompt_change", "Says that the prompts changed.", trigger_prompt_change),
    fixture("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", echo, SCHEMA_2020_12),
    fixture("test_custom_header", "Takes an argument that is mirrored into a header.", echo, MIRRORED),
)
