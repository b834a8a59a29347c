"""What may a tool ask of the workspace's index? The port that `guards` implements.

The index knows which files hold which words and what they define. What it shows is read from the disk as it is now,
through the same jail as everything else. Methods block and are called in a thread; they raise `Refusal`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

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


@dataclass(frozen=True, slots=True)
class IndexRequest:
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
    """True for files, by their path below the workspace, that are left out as if they did not exist."""


@dataclass(frozen=True, slots=True)
class IndexHit:
    """One line, and how well it fits: whole numbers, so that the order is the same everywhere."""

    path: str
    line: int
    text: str
    score: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something that a file defines."""

    name: str
    kind: str
    path: str
    line: int
    last: int
    """The line it ends on."""
    within: str = ""
    """What it is defined in, from the outside in: `Store.Inner`."""
    text: str = ""
    """The line that defines it."""

    @property
    def full_name(self) -> str:
        return f"{self.within}.{self.name}" if self.within else self.name


@dataclass(frozen=True, slots=True)
class Freshness:
    """How closely the index matches the disk."""

    complete: bool
    """Every file was checked after the caller arrived."""
    files: int = 0
    """Files in the index."""
    looked: int = 0
    """Files checked in the current round, or in the last one."""
    read: int = 0
    """Those of them that had to be read, because they were new or changed."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Why files are not in the index, and how many."""


@dataclass(frozen=True, slots=True)
class IndexHits:
    shown: tuple[IndexHit, ...]
    total: int
    files: int
    complete: bool = True
    """False if the total is a lower bound, because time or space ran out."""


@dataclass(frozen=True, slots=True)
class Symbols:
    shown: tuple[Symbol, ...]
    total: int
    complete: bool = True


class Index(Protocol):
    def get_refresh_mark(self) -> int:
        """Return a mark for `refresh`: what is checked after it counts as fresh for its holder."""
        ...

    def refresh(self, mark: int, seconds: float) -> Freshness:
        """Look for changes on the disk for that long. Call again until the result is complete, or good enough."""
        ...

    def search(self, request: IndexRequest, /) -> IndexHits: ...

    def find_symbols(self, request: IndexRequest, /) -> Symbols: ...

    def outline_text(self, path: str, text: str) -> tuple[Symbol, ...]:
        """Return what this text would define as the file at that path; reads nothing else."""
        ...
