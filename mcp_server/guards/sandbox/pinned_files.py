"""Does a script that was approved still say the same by the time its shell reads it?

bash reads a script while it runs it, so what else writes in the workspace could change the rest of it. A sandboxed
command gets a copy instead, in the script's place, which is compared with what was approved and then cannot change.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from hashlib import sha256

from msgspec import Struct

from mcp_server.guards.jail import Jail
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import quote_text

MOST_BYTES = 4 << 20
"""A larger one is compared just before the command starts, and no later."""


class PinnedFile(Struct, frozen=True):
    path: str
    """The whole path."""
    mode: int
    descriptor: int
    """Holds the copy, to be read from its beginning."""


def open_pinned_files(jail: Jail, approved: Mapping[str, str]) -> tuple[PinnedFile, ...]:
    """Copy each file whose content was approved, given by its SHA-256. Raises if one has changed."""
    with ExitStack() as opened:
        files: list[PinnedFile] = []
        for file in _copy_files(jail, approved):
            opened.callback(os.close, file.descriptor)
            files.append(file)
        opened.pop_all()
        return tuple(files)


def _copy_files(jail: Jail, approved: Mapping[str, str]) -> Iterator[PinnedFile]:
    for path, digest in approved.items():
        with jail.open_place(path) as place, os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as file:
            found, data = os.fstat(file.fileno()), file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            continue
        if sha256(data).hexdigest() != digest:
            message = f"{quote_text(path)} changed after the user was asked. Nothing ran."
            raise Refusal(Problem(Code.STALE, message, "Make the call again; the user will be asked again."))
        copy = os.memfd_create("pinned", os.MFD_CLOEXEC)
        os.write(copy, data)
        os.lseek(copy, 0, os.SEEK_SET)
        yield PinnedFile(str(jail.root / place.path), stat.S_IMODE(found.st_mode) & 0o555, copy)
