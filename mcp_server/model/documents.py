"""What does a pack remember from one call to the next? Documents, kept for a session or for a person's workspace.

They are durable before a method answers, and every change is a row of the ledger: which document, from which mark to
which, why, and the digest of what it says; never what it says. Nobody finds a document by guessing: what is kept for
another session, or another person, is answered like what was never there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

MOST_DOCUMENTS = 10_000
"""Of one kind, in one place; a further one is refused."""
LARGEST_DOCUMENT = 512 << 10
"""Bytes of one document's body as JSON."""


@dataclass(frozen=True, slots=True)
class Document:
    """One version of something that is remembered."""

    kind: str
    """What it is, such as `todo`: the documents of a kind are listed together."""
    id: str
    body: Mapping[str, Any]
    """Anything JSON can say."""
    mark: str = ""
    """The one word it is looked for and counted by, such as how far it is. Stands in the ledger, so it is no secret."""
    version: int = 0
    """How often it was written; 0 for one that never was."""
    made: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody else wrote it since it was read: nothing was written, this is how it stands now."""

    current: Document | None
    """None where it is gone."""


@dataclass(frozen=True, slots=True)
class Tally:
    documents: int = 0
    changes: int = 0
    """How often those documents were written, which is how many rows the ledger has about them."""


@dataclass(frozen=True, slots=True)
class DocumentCause:
    """Why a document is written, as the ledger tells it."""

    event: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A few words and numbers. They are kept for ever and shown to the person: no secret belongs here."""


class Documents(Protocol):
    """The documents kept in one place. Methods wait for the state, and raise `Refusal` where it cannot be used."""

    def new_id(self) -> str:
        """Eight signs that nobody guesses and nothing else here is called by."""
        ...

    async def get(self, kind: str, id: str) -> Document | None: ...

    async def put(self, document: Document, why: DocumentCause) -> Document | Overtaken:
        """Write it in place of the version it names, or as a new one where that is 0; as it stands then."""
        ...

    async def list_documents(
        self, kind: str, mark: str | None = None, limit: int = MOST_DOCUMENTS, offset: int = 0
    ) -> Sequence[Document]:
        """In the order in which they were first written."""
        ...

    async def count_by_mark(self, kind: str) -> Mapping[str, Tally]:
        """How many there are of each mark."""
        ...


class Records(Protocol):
    @property
    def session(self) -> Documents:
        """What this session remembers, in all of its places."""
        ...

    @property
    def place(self) -> Documents:
        """What this place of the session remembers: the one that is found again by this menu handle."""
        ...

    @property
    def workspace(self) -> Documents:
        """What every session of this person remembers in this workspace."""
        ...
