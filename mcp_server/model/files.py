"""What may a tool do with the files of the workspace? The port that `guards` implements.

Every path is checked where it is opened, beneath the workspace, without following a link out of it. Methods block and
are called in a thread; they raise `Refusal` with the problem to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a file looked like when it was read: enough to notice that it changed since."""

    size: int
    mtime_ns: int
    digest: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file's bytes, the path they were found at (relative to the workspace), and its stamp."""

    path: str
    data: bytes
    stamp: Stamp
    mode: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    kind: str
    """`file`, `directory`, `link` or `other`."""
    size: int
    mtime_ns: int
    mode: int


@dataclass(frozen=True, slots=True)
class Search:
    """One look through the workspace, as `grep` and `glob` mean it."""

    pattern: str
    path: str = ""
    globs: tuple[str, ...] = ()
    type: str | None = None
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    only_matching: bool = False
    want: str = "files"
    """`files`, `content` or `count`."""
    limit: int = 250
    """0 for all."""
    offset: int = 0
    timeout: float = 30.0
    line_numbers: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    lines: tuple[str, ...]
    total: int
    complete: bool
    """False when the total is a lower bound, because time or room ran out."""
    timed_out: bool = False
    engine: str = ""
    searched: int | None = None
    """How many files were looked into, where that is known."""
    files: int = 0
    """How many files matched."""
    matches: int | None = None
    """How many lines matched (places, where a match may span lines), where they were counted."""


class Files(Protocol):
    @property
    def root(self) -> str:
        """The workspace's absolute path, for messages."""
        ...

    def read(self, path: str, limit: int) -> Snapshot: ...

    def info(self, path: str) -> Entry: ...

    def entries(self, path: str, depth: int = 1) -> Sequence[Entry]: ...

    def write(self, path: str, data: bytes, expect: Stamp | None, mode: int | None = None) -> Entry:
        """Put these bytes there in one step. `expect` is the stamp of what is being replaced, None for a new file."""
        ...

    def make_folder(self, path: str) -> Entry: ...

    def move(self, source: str, destination: str) -> Entry: ...

    def trash(self, path: str) -> str:
        """Take a file or an empty folder away, to where it can be had back from; the place."""
        ...

    def remove(self, path: str) -> None: ...

    def grep(self, search: Search) -> Found: ...

    def glob(self, search: Search) -> Found: ...

    def remember(self, path: str, stamp: Stamp) -> None:
        """This session has seen the file as it is in this stamp."""
        ...

    def recall(self, path: str) -> Stamp | None: ...
