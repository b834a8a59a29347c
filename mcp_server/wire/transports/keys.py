"""Which secrets does the wire keep? Files that their owner alone can read, made the first time they are needed."""

import os
import secrets
from pathlib import Path


def kept(path: Path) -> str:
    """The secret at this path: 32 random bytes, written so that they can stand in a header."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        path.chmod(0o600)
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(made := secrets.token_urlsafe(32))
    return made
