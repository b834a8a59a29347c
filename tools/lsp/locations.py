"""Which file of the workspace does a URI mean, and how is a place in it shown?"""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from mcp_server.model.files import Files, is_secret
from mcp_server.model.results import Refusal
from mcp_server.model.text import escape_for_model
from tools.files.lines import BOM, MOST_BYTES, describe_non_text
from tools.lsp.protocol import LspRange
from tools.lsp.text import DocumentText, format_shown_line


def uri_from_path(root: str, path: str) -> str:
    return "file://" + quote(os.fsencode(posixpath.join(root, path).rstrip("/")))


def workspace_path_from_uri(root: str, uri: str) -> str | None:
    """Return the path relative to the workspace; None if the URI lies outside, or is not of a file."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        return None
    path = posixpath.normpath(unquote(parts.path, errors="surrogateescape"))
    start = root.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) and "\0" not in path else None


def _file_name_from_uri(uri: str) -> str:
    """Return the file's name alone, for a file outside: enough to recognise the standard library's `os.pyi`."""
    return escape_for_model(unquote(uri.rpartition("/")[2], errors="replace"))[:80]


@dataclass
class TextCache:
    """The texts that one answer shows lines of, each read once, through the guards."""

    files: Files
    queried_path: str
    """The file that the call is about; if it is secret, the user approved it."""
    encoding: str
    texts: dict[str, DocumentText | None] = field(default_factory=dict[str, DocumentText | None])

    def get_text(self, path: str) -> DocumentText | None:
        """Return the text; None if we must not show it: not text, a secret, or behind a link out of the workspace."""
        if path not in self.texts:
            self.texts[path] = None if is_secret(path) and path != self.queried_path else self._read_document(path)
        return self.texts[path]

    def _read_document(self, path: str) -> DocumentText | None:
        try:
            snapshot = self.files.read(path, MOST_BYTES)
        except Refusal:
            return None
        if not snapshot.whole or describe_non_text(snapshot.data):
            return None
        return DocumentText(snapshot.data.decode("utf-8", "replace").removeprefix(BOM))

    def find_offsets(self, place: LspRange, path: str) -> tuple[int, int] | None:
        text = self.get_text(path)
        start = None if text is None else text.offset_from_position(place.start, self.encoding)
        if text is None or start is None:
            return None
        end = text.offset_from_position(place.end, self.encoding)
        return start, max(start, end if end is not None else start)

    def format_line(self, place: LspRange, path: str, note: str | None = None) -> str | None:
        """Format a place as `path:line:col`, tab, and its line or the note; None if it must not be shown."""
        text, offsets = self.get_text(path), self.find_offsets(place, path)
        if text is None or offsets is None:
            return None
        number, column = text.to_line_column(offsets[0])
        line = format_shown_line(text.get_line(number) if note is None else note)
        return f"{escape_for_model(path)}:{number}:{column}\t{line}"


class SortedPlaces(Struct, frozen=True):
    inside: tuple[tuple[str, int], ...]
    """Path and index of each place in the workspace."""
    outside: tuple[str, ...]
    """File names."""


def sort_by_file(root: str, queried_path: str, places: Sequence[tuple[LspRange, str]]) -> SortedPlaces:
    """Sort places by file and line, the file that the call is about first; drop repeats of a place with its note."""
    indexes: dict[tuple[str, tuple[int, int], str], int] = {}
    outside: list[str] = []
    for index, (place, note) in enumerate(places):
        path = workspace_path_from_uri(root, place.uri)
        if path is None:
            outside.append(_file_name_from_uri(place.uri))
        else:
            indexes.setdefault((path, place.order, note), index)
    order = sorted(indexes, key=lambda key: (key[0] != queried_path, key))
    return SortedPlaces(tuple((key[0], indexes[key]) for key in order), tuple(outside))
