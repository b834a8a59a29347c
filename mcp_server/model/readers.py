"""What does a stranger's document say? The port to the process that reads documents, so that no parser runs here."""

from typing import Protocol

from msgspec import Struct


class ReadPage(Struct, frozen=True):
    """A web page as a person sees it. The text is untrusted."""

    title: str
    text: str
    """In Markdown."""
    hidden: int = 0
    """How many parts that nobody can see were left out."""
    cut: bool = False
    """True if some of the page could not be read."""


class Readers(Protocol):
    async def read_page(self, data: bytes, charset: str | None, address: str) -> ReadPage:
        """Read an HTML page. `charset` is what the server said; `address` is what its links are relative to."""
        ...
