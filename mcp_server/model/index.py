"""What can a tool look up in the workspace's index? The port that `guards` implements.

The index knows which files hold which words and what they define. What it shows is read from the disk as it is now,
through the same jail as everything else. Methods block and are called in a thread; they raise `Refusal`.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct, field

KINDS = (
    "class",
    "function",
    "method",
    "interface",
    "struct",
    "enum",
    "type",
    "module",
    "constant",
    "variable",
    "table",
    "heading",
)
"""The kinds of symbols, in words that fit every language: a trait is an interface, a view is a table."""


class IndexRequest(Struct, frozen=True):
    """What to search for, and which part of the results to show."""

    query: str = ""
    path: str = ""
    """Only in this file or folder."""
    glob: str = ""
    kind: str = ""
    """Only symbols of this kind."""
    limit: int = 20
    offset: int = 0
    seconds: float = 10.0
    hides: Callable[[str], bool] | None = None
    """Gets a path relative to the workspace; returns True to leave the file out as if it did not exist."""


class IndexHit(Struct, frozen=True):
    """One matching line and its score, an integer so that the order is the same everywhere."""

    path: str
    line: int
    text: str
    score: int


class Symbol(Struct, frozen=True):
    """A symbol that a file defines."""

    name: str
    kind: str
    path: str
    line: int
    last: int
    """The line it ends on."""
    within: str = ""
    """The symbols that contain it, outermost first: `Store.Inner`."""
    text: str = ""
    """The line that defines it."""

    @property
    def full_name(self) -> str:
        return f"{self.within}.{self.name}" if self.within else self.name


class Freshness(Struct, frozen=True):
    """How closely the index matches the disk."""

    complete: bool
    """True if every file was checked after the call began."""
    files: int = 0
    """Files in the index."""
    looked: int = 0
    """Files checked in the current round, or in the last one."""
    read: int = 0
    """How many of these had to be read, because they were new or had changed."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many files are not in the index, by reason."""


class IndexHits(Struct, frozen=True):
    shown: tuple[IndexHit, ...]
    total: int
    files: int
    complete: bool = True
    """False if the total is a lower bound, because time or space ran out."""


class Symbols(Struct, frozen=True):
    shown: tuple[Symbol, ...]
    total: int
    complete: bool = True


class Index(Protocol):
    def get_refresh_mark(self) -> int:
        """Return a mark for `refresh`, which counts every file checked after this call as fresh."""
        ...

    def refresh(self, mark: int, seconds: float) -> Freshness:
        """Look for changes on disk for at most `seconds`. Call again until the result is complete, or good enough."""
        ...

    def search(self, request: IndexRequest, /) -> IndexHits: ...

    def find_symbols(self, request: IndexRequest, /) -> Symbols: ...

    def outline_text(self, path: str, text: str) -> tuple[Symbol, ...]:
        """Return the symbols that this text would define in a file at that path; read nothing else."""
        ...
