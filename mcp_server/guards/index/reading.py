"""What does this file say, if it is one for the index? Plain text of a sensible length that holds nobody's secrets."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.file_types import holds_secrets
from mcp_server.model.results import Refusal

MOST_BYTES = 1 << 20
"""A longer file is data, or was written by a program."""
LARGE, BINARY, SECRET, UNREADABLE, TOO_MANY = (
    "over 1 MB",
    "binary",
    "usually secret",
    "not readable",
    "more than the index holds",
)
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True, slots=True)
class IndexText:
    text: str
    digest: bytes


@contextmanager
def folder(jail: Jail, path: str) -> Generator[int]:
    opened = jail.open_folder(path)
    try:
        yield opened
    finally:
        os.close(opened)


def read(jail: Jail, place: JailPath) -> IndexText | str:
    """The text, or why it is left out."""
    if holds_secrets(place.path):
        return SECRET
    try:
        with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as source:
            data = source.read(MOST_BYTES + 1)
    except (OSError, Refusal):
        return UNREADABLE
    return LARGE if len(data) > MOST_BYTES else decoded(data)


def decoded(data: bytes) -> IndexText | str:
    digest = sha256(data).digest()[:16]
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return IndexText(_lines(data[len(mark) :].decode(encoding, "replace")), digest)
    return BINARY if b"\0" in data else IndexText(_lines(data.decode("utf-8", "replace")), digest)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def read_path(jail: Jail, path: str) -> IndexText | str:
    """The same by its path, wherever that lies."""
    above, _, name = path.rpartition("/")
    try:
        with folder(jail, above or ".") as opened:
            return read(jail, JailPath(opened, name, path, False))
    except (OSError, Refusal):
        return UNREADABLE
