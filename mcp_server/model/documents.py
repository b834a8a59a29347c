"""What does a pack remember from one call to the next? Documents, kept for a session or for a person's workspace.

They are durable before a method returns. Every change is a row of the ledger: the document, its old and new mark, the
reason, and the digest of its content, never the content. Nobody finds a document by guessing: a document of another
session or person gets the same answer as one that never existed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

MOST_DOCUMENTS = 10_000
"""Documents of one kind in one place; another one is refused."""
LARGEST_DOCUMENT = 512 << 10
"""Bytes of one document's body as JSON."""


@dataclass(frozen=True, slots=True)
class Document:
    """One version of something that is remembered."""

    kind: str
    """What it is, such as `todo`: the documents of a kind are listed together."""
    id: str
    body: Mapping[str, Any]
    """Anything that JSON can represent."""
    mark: str = ""
    """The one word it is searched and counted by, such as its progress. It is in the ledger, so it must not be a
    secret."""
    version: int = 0
    """How often it was written; 0 if never."""
    made: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Another writer changed it since it was read: nothing was written, and this is its current version."""

    current: Document | None
    """None if it is gone."""


@dataclass(frozen=True, slots=True)
class Tally:
    documents: int = 0
    changes: int = 0
    """How often those documents were written, which is how many rows the ledger has about them."""


@dataclass(frozen=True, slots=True)
class DocumentCause:
    """Why a document is written, as the ledger shows it."""

    event: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A few words and numbers. They are kept forever and shown to the user: no secret belongs here."""


class Documents(Protocol):
    """The documents kept in one place. Methods wait for the state, and raise `Refusal` if it cannot be used."""

    def new_id(self) -> str:
        """Return eight characters that cannot be guessed and that name nothing else here."""
        ...

    async def get(self, kind: str, id: str) -> Document | None: ...

    async def put(self, document: Document, why: DocumentCause) -> Document | Overtaken:
        """Replace the version it names, or create it if that is 0; return it as stored."""
        ...

    async def list_documents(
        self, kind: str, mark: str | None = None, limit: int = MOST_DOCUMENTS, offset: int = 0
    ) -> Sequence[Document]:
        """List them in the order in which they were first written."""
        ...

    async def count_by_mark(self, kind: str) -> Mapping[str, Tally]:
        """Count the documents of each mark."""
        ...


class Records(Protocol):
    @property
    def session(self) -> Documents:
        """What this session remembers, in all of its places."""
        ...

    @property
    def place(self) -> Documents:
        """What this place of the session remembers; this menu handle finds it again."""
        ...

    @property
    def workspace(self) -> Documents:
        """What every session of this person remembers in this workspace."""
        ...
