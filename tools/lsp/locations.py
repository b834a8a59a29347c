"""Which file of the workspace does an address mean, and how is a place in it shown?"""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from mcp_server.model.files import Files, is_secret
from mcp_server.model.results import Refusal
from mcp_server.model.text import make_visible
from tools.files.lines import BOM, MOST_BYTES, describe_non_text
from tools.lsp.protocol import LspRange
from tools.lsp.text import DocumentText, format_shown_line

MOST_NAMED = 3


def uri_from_path(root: str, path: str) -> str:
    return "file://" + quote(os.fsencode(posixpath.join(root, path).rstrip("/")))


def workspace_path_from_uri(root: str, uri: str) -> str | None:
    """The path below the workspace; None for what lies outside, or is no file at all."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        return None
    path = posixpath.normpath(unquote(parts.path, errors="surrogateescape"))
    start = root.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) and "\0" not in path else None


def file_name_from_uri(uri: str) -> str:
    """The last word of an address outside: enough to know that it is the standard library's `os.pyi`."""
    return make_visible(unquote(uri.rpartition("/")[2], errors="replace"))[:80]


@dataclass
class Shelf:
    """The texts that one answer shows lines of, each read once, through the guards."""

    files: Files
    asked: str
    """The file the question was about, which was read with the person's leave where it needed one."""
    encoding: str
    texts: dict[str, DocumentText | None] = field(default_factory=dict[str, DocumentText | None])

    def get_text(self, path: str) -> DocumentText | None:
        """None where it is not to be shown: no text, a secret, or a link to where nobody may look."""
        if path not in self.texts:
            self.texts[path] = None if is_secret(path) and path != self.asked else self._read_document(path)
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
        if text is None:
            return None
        start, end = (
            text.offset_from_position(place.start, self.encoding),
            text.offset_from_position(place.end, self.encoding),
        )
        return None if start is None else (start, max(start, end if end is not None else start))

    def format_line(self, place: LspRange, path: str, instead: str | None = None) -> str | None:
        """`path:line:col<TAB>line text`, or with something else behind it; None where it is not to be shown."""
        text, at = self.get_text(path), self.find_offsets(place, path)
        if text is None or at is None:
            return None
        number, column = text.to_line_column(at[0])
        line = format_shown_line(text.get_line(number) if instead is None else instead)
        return f"{make_visible(path)}:{number}:{column}\t{line}"


@dataclass(frozen=True, slots=True)
class Sorted:
    """Places of the workspace by file, and the names of files outside of it."""

    within: tuple[tuple[str, int], ...]
    """Path, and which of the places given it was."""
    outside: tuple[str, ...]


def sort_by_file(root: str, asked: str, places: Sequence[tuple[LspRange, str]]) -> Sorted:
    """The file asked about first, then the others by their path; in each from top to bottom. Every place is there
    once, or once for each thing that is said of it."""
    found: dict[tuple[str, tuple[int, int], str], int] = {}
    outside: list[str] = []
    for index, (place, says) in enumerate(places):
        path = workspace_path_from_uri(root, place.uri)
        if path is None:
            outside.append(file_name_from_uri(place.uri))
        else:
            found.setdefault((path, place.order, says), index)
    order = sorted(found, key=lambda key: (key[0] != asked, key))
    return Sorted(tuple((key[0], found[key]) for key in order), tuple(outside))
