"""What does the answer say about a failure that the sandbox may have caused?"""

import re
from collections.abc import Callable, Sequence

from mcp_server.model.context import Context
from mcp_server.model.shell import WordRole
from mcp_server.model.text import quote_text
from tools.shell.lines import read_line
from tools.shell.offline_lines import MANAGERS, find_download
from tools.shell.starters import STARTERS
from tools.shell.surroundings import look_around

OFFLINE = re.compile(
    "resolve host|name resolution|Name or service not known|etwork is unreachable|EAI_AGAIN|ENOTFOUND|getaddrinfo"
    "|Failed to establish a new connection|Connection refused|no route to host",
    re.IGNORECASE,
)
BUSY = "Device or resource busy"
READ_ONLY = re.compile(f"Read-only file system|permission denied|Invalid cross-device link|{BUSY}", re.IGNORECASE)
ADDRESS_SPACE = re.compile("ReserveShadowMemoryRange|ulimit -v")


def format_hints(ctx: Context, line: str, text: str, failed: bool) -> str:
    """Explain a failure that the sandbox may have caused. One that needs a network may not show, as behind `| tail`."""
    if not failed:
        return format_network_hint(ctx, line)
    found: list[str] = []
    if not ctx.processes.network and OFFLINE.search(text):
        found.append(f"[commands have no network at the profile `{ctx.processes.profile}`]")
    elif hint := format_network_hint(ctx, line):
        found.append(hint)
    if ADDRESS_SPACE.search(text):
        found.append(
            "[a process may use only so much memory, reserved addresses included, and AddressSanitizer reserves many "
            "terabytes; build without it, because only the profile `unrestricted` has no such limit]"
        )
    if ctx.processes.sandbox == "landlock" and "ermission denied" in text:
        found.append(
            "[the Landlock sandbox allows no new files directly in a folder that contains something protected, such as "
            "the workspace's top folder; if the user installs bubblewrap, this restriction goes away]"
        )
    if ctx.processes.sandbox == "bubblewrap" and BUSY in text:
        found.append("[commands cannot move a folder that contains secrets or files that control other programs]")
    if READ_ONLY.search(text) and (fixed := ctx.processes.fixed):
        names = ", ".join(f"`{one}`" for one in fixed)
        found.append(
            f"[menugate itself runs from {names}, which no command can change below the profile `unrestricted`; this "
            "does not apply if the user installs menugate outside the workspace]"
        )
    return "\n".join(found)


def format_network_hint(ctx: Context, line: str) -> str:
    """Say that a program in the line may want to download something, if commands have no network."""
    name = "" if ctx.processes.network else find_line_download(ctx, line)
    if not name:
        return ""
    return f"[commands have no network at the profile `{ctx.processes.profile}`, and {quote_text(name)} may need one]"


def find_line_download(ctx: Context, text: str) -> str:
    """Return the first command of the line that may download; empty if none is known to."""
    line = read_line(text) if MANAGERS.search(text) else None
    around = look_around(ctx)
    for command in line.list_commands() if line else ():
        words = tuple(word.text for word in command.words if word.role is WordRole.WORD)
        if name := _find_started_download(words, lambda path: bool(around.find_kind(path))):
            return name
    return ""


def _find_started_download(words: Sequence[str], is_there: Callable[[str], bool]) -> str:
    while words:
        if name := find_download(words, is_there):
            return name
        started = STARTERS[words[0]](words[1:]) if words[0] in STARTERS else None
        words = started[0] if started else ()
    return ""
