"""What are the tools of other servers called here? A name depends on its server and its tool alone."""

import hashlib
import re
from collections.abc import Collection

LONGEST_NAME = 40
LONGEST_SLUG = 14
HASH_CHARS = 5
WRITABLE = re.compile(r"[\w./-]+", re.ASCII)
"""What a rule or a menu can say of a tool's own name."""
UNCHANGED = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""The names that a server without a prefix keeps: every revision of the protocol accepts them."""
RESOURCE, PROMPT = "resource", "prompt"
"""What rules and modes call the resources and the prompts of a server, after its name."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def slug_server(name: str) -> str:
    """Return the first part of the names of a server's tools. No `_` is in it, so the first `_` ends it."""
    return re.sub("[^a-z0-9]", "", name.lower())[:LONGEST_SLUG]


def slug_tool(slug: str, tool: str, taken: Collection[str] = ()) -> str:
    """Return the name that clients see. What was changed or cut gets a short hash of the original, so that no two
    tools of a server share a name. `taken`: menugate's own names."""
    room = LONGEST_NAME - len(slug) - 1
    plain = re.sub("_+", "_", re.sub("[^a-z0-9_]", "_", tool.lower())).strip("_")
    name = f"{slug}_{plain}"
    if plain == tool and len(plain) <= room and name not in taken:
        return name
    short = plain[: room - HASH_CHARS - 1].rstrip("_")
    return "_".join(filter(None, (slug, short, hash_name(tool))))


def hash_name(text: str) -> str:
    """Hash a name to a few lower-case letters and digits."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    digits = ""
    for _ in range(HASH_CHARS):
        number, digit = divmod(number, len(DIGITS))
        digits += DIGITS[digit]
    return digits


def format_written_name(server: str, tool: str) -> str:
    """Write the tool as rules and menus do, `server:tool`. A name that they cannot say, or that means something else
    there, becomes or gets a short hash."""
    if tool in (RESOURCE, PROMPT):
        return f"{server}:{tool}_{hash_name(tool)}"
    return f"{server}:{tool if WRITABLE.fullmatch(tool) else hash_name(tool)}"
