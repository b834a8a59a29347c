"""Which secrets has the user stored? Names, where each may be used, and the last use; never a value."""

from datetime import UTC, datetime
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Done, Ending
from mcp_server.model.secrets import SecretEntry
from mcp_server.model.text import escape_for_model, format_count
from tools.integrations.definitions import ListSecretsArguments

NONE = "No secrets are stored for this folder. If a server needs one, ask the user to run `menugate secret set NAME`."


async def list_secrets(ctx: Context, _args: ListSecretsArguments) -> Ending:
    entries, unread = await to_thread.run_sync(ctx.secrets.list_entries)
    lines = [describe_entry(entry) for entry in entries] or [NONE]
    if unread:
        lines.append(f"{format_count(unread, 'file')} could not be read; `menugate secret list` tells the user why.")
    return Done("\n".join(lines), {"secrets": [build_row(entry) for entry in entries], "unread": unread})


def describe_entry(entry: SecretEntry) -> str:
    row = build_row(entry)
    sites = f", and on {', '.join(row['sites'])}" if row["sites"] else ""
    used = f"last used {row['used']} by {row['used_by']}" if row["used"] else "never used"
    return f"- {row['name']}: for servers of {row['folders']}{sites}; {used}."


def build_row(entry: SecretEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "folders": "this folder only" if entry.workspace else "every folder",
        "sites": list(entry.origins),
        "used": format_time(entry.used) if entry.used else None,
        "used_by": escape_for_model(entry.used_by, one_line=True) if entry.used else None,
    }


def format_time(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
