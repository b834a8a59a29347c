"""Which tools do both sides serve? As many as requested, as large as real ones, and one that does nothing."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import EVERY_STAGE, Effect, Hints, Tool

MODE = "bench"
NOTHING = "do_nothing"
WORDS = """
archive approve assign collect compare convert deliver describe forward inspect merge measure publish rename restore
schedule search summarize translate validate withdraw export
account branch budget calendar contract customer document folder invoice ledger message order package picture project
quote report shipment supplier survey template ticket voucher warehouse
"""
VERBS, NOUNS = WORDS.split()[:22], WORDS.split()[22:]


def list_names(count: int) -> list[str]:
    """Yield the idle tool, then verb after verb: names that are easy to tell apart."""
    tool_names = [f"{verb}_{noun}" for noun, verb in product(NOUNS, VERBS)]
    if count > len(tool_names) + 1:
        raise ValueError(f"the catalogue has names for {len(tool_names) + 1} tools, not for {count}")
    return [NOTHING, *tool_names][:count]


def _schema(verb: str, noun: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": f"Where the {noun} is, relative to the workspace."},
            "limit": {"type": "integer", "description": "At most this many.", "default": 50, "minimum": 1},
            "order": {"type": "string", "enum": ["newest", "oldest", "name"], "default": "newest"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": f"Only a {noun} with these tags."},
            "dry_run": {"type": "boolean", "description": f"Say what to {verb}, and leave it.", "default": False},
        },
        "required": ["path"],
        "additionalProperties": False,
    }


IDLE: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "Anything; it is not read."}},
    "required": ["text"],
    "additionalProperties": False,
}


async def do_nothing(_ctx: Context, _args: Any) -> Done:
    return Done("ok")


def build_tools(count: int) -> Iterator[Tool]:
    for name in list_names(count):
        verb, _, noun = name.partition("_")
        yield Tool(
            name=name,
            title=f"{verb} {noun}".capitalize(),
            description=(
                f"{verb.capitalize()} one {noun} or several. Takes the place of the {noun} and answers with what was "
                f"found there, newest first; use it when a person asks about a {noun} by name."
            ),
            arguments=IDLE if name == NOTHING else _schema(verb, noun),
            profile=Profile.RESTRICTED,
            effect=Effect.NONE,
            hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
            stages=EVERY_STAGE,
            run=do_nothing,
        )


def build_pack(count: int, menus: str) -> Pack:
    return Pack(name=MODE, tools=tuple(build_tools(count)), menus=(menus,))


def render_menu(count: int) -> str:
    """Render the file of the one mode that has all of them."""
    head = {
        "name": MODE,
        "title": "Bench",
        "role": "You are a clerk who is timed.",
        "goal": "Answer as fast as the server lets you.",
        "offers": "Many tools of ordinary size, and one that does nothing.",
        "when": "when the server is measured, and never for real work",
        "remember": "nothing here does anything.",
    }
    lines = [f"{key}: {value}" for key, value in head.items()]
    return "\n".join([*lines, "tools:", *(f"  - {name}" for name in list_names(count)), ""])


def build_listed_tools(count: int) -> list[dict[str, Any]]:
    """Convert the same tools to the protocol's shape, for a server without any of our code."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": dict(tool.arguments),
            "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
        }
        for tool in build_tools(count)
    ]
