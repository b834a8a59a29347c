"""Which secrets does the wire keep? Files that their owner alone can read, made the first time they are needed."""

import os
import re
import secrets
from pathlib import Path

from mcp_server.model.ending import Code, Problem, Refusal

KEPT = re.compile(rb"[A-Za-z0-9_-]{43}\n?")


def kept(path: Path) -> str:
    """The secret at this path: 32 random bytes, written so that they can stand in a header."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        found = _made(path)
    if not KEPT.fullmatch(found):
        raise Refusal(
            Problem(
                Code.STORE_UNAVAILABLE, f"`{path}` does not hold a key.", "Delete it, and menugate makes a new one."
            )
        )
    path.chmod(0o600)
    return found.decode().strip()


def _made(path: Path) -> bytes:
    """Of two processes that start together one is first, and both then use what it made, whole."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_urlsafe(32).encode() + b"\n")
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_bytes()
