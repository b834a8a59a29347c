"""What may a tool ask of the index of the workspace? The port that `guards` implements.

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
"""What a symbol can be, in the words of every language alike: a trait is an interface, a view is a table."""


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """What is looked for, and which part of what is found is shown."""

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
    """Files that are left out as if they were not there, by their path below the workspace."""


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
    """How far the index is what the disk is."""

    complete: bool
    """Every file was looked at after the caller came."""
    files: int = 0
    """Files in the index."""
    looked: int = 0
    """Files looked at in the round that is going on, or in the last one."""
    read: int = 0
    """Files of these that had to be read, because they were new or other than before."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Why files are not in the index, and how many."""


@dataclass(frozen=True, slots=True)
class IndexHits:
    shown: tuple[IndexHit, ...]
    total: int
    files: int
    complete: bool = True
    """False where the total is a lower bound, because time or room ran out."""


@dataclass(frozen=True, slots=True)
class Symbols:
    shown: tuple[Symbol, ...]
    total: int
    complete: bool = True


class Index(Protocol):
    def get_refresh_mark(self) -> int:
        """A mark for `refresh`: what is looked at after it is fresh for whoever holds it."""
        ...

    def refresh(self, mark: int, seconds: float) -> Freshness:
        """Look for so long at what changed on the disk; to be called again until it is complete, or enough."""
        ...

    def search(self, wanted: IndexRequest) -> IndexHits: ...

    def find_symbols(self, wanted: IndexRequest) -> Symbols: ...

    def outline_text(self, path: str, text: str) -> tuple[Symbol, ...]:
        """What this text defines, were it the file at that path; looks at nothing else."""
        ...
