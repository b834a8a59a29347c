"""What can a pack store between calls? Documents, for a session or for a user's workspace.

They are durable before a method returns. Every change is a row of the ledger: the document, its old and new mark, the
reason, and the digest of its content, never the content. Nobody finds a document by guessing: a document of another
session or person gets the same answer as one that never existed."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

MOST_DOCUMENTS = 10_000
"""Documents of one kind in one place; another one is refused."""
LARGEST_DOCUMENT = 512 << 10
"""Bytes of one document's body as JSON."""


class Document(Struct, frozen=True):
    """One version of a stored document."""

    kind: str
    """What it is, such as `todo`. Documents are listed by kind."""
    id: str
    body: Mapping[str, Any]
    """Anything that JSON can represent."""
    mark: str = ""
    """One word to search and count by, such as a status. The ledger shows it, so it must not be a secret."""
    version: int = 0
    """How often it has been written; 0 if never."""
    made: int = 0
    changed: int = 0


class Overtaken(Struct, frozen=True):
    """Another writer changed the document after it was read, so nothing was written."""

    current: Document | None
    """The current version; None if the document is gone."""


class Tally(Struct, frozen=True):
    documents: int = 0
    changes: int = 0
    """How often those documents were written, which is how many rows the ledger has about them."""


class DocumentCause(Struct, frozen=True):
    """Why a document is written, as the ledger shows it."""

    event: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A few words and numbers. They are kept forever and shown to the user, so they must not contain secrets."""


class Documents(Protocol):
    """The documents stored in one place. Methods wait for the state file, and raise `Refusal` if it cannot be used."""

    def new_id(self) -> str:
        """Return an unused id: eight characters that cannot be guessed."""
        ...

    async def get(self, kind: str, id: str) -> Document | None: ...

    async def put(self, document: Document, why: DocumentCause) -> Document | Overtaken:
        """Replace the version that `document` has, or create the document if its version is 0. Return it as stored."""
        ...

    async def list_documents(
        self, kind: str, mark: str | None = None, limit: int = MOST_DOCUMENTS, offset: int = 0
    ) -> Sequence[Document]:
        """List the documents of a kind, and of a mark if given, in the order in which they were first written."""
        ...

    async def count_by_mark(self, kind: str) -> Mapping[str, Tally]:
        """Count the documents of each mark."""
        ...


class Records(Protocol):
    @property
    def session(self) -> Documents:
        """Documents of this session, shared by all of its places."""
        ...

    @property
    def place(self) -> Documents:
        """Documents of this place in the session, which its menu handle finds again."""
        ...

    @property
    def workspace(self) -> Documents:
        """Documents that all sessions of this user share in this workspace."""
        ...
