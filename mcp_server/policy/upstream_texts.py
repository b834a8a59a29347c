"""Which texts of a server will a model read, and how do they read without tricks of spelling?

Look-alike letters, invisible characters and unusual forms are folded away, so that the same words are found however
they are written. Every step is linear in the length of the text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from msgspec import Struct

from mcp_server.model.text import INVISIBLE
from mcp_server.model.upstreams import Catalogue

MAX_CHARS = 4_000_000
"""More text than this is not looked at, and the check says so."""
MAX_DEPTH = 64
MIN_KEY_CHARS = 12
FOLDED_AWAY = re.compile(f"[{INVISIBLE}\u200d\ufe0e\ufe0f*`]")
"""Invisible characters, and the marks of Markdown that may stand inside a word."""
LOOKALIKES: Mapping[str, str] = dict(
    zip(
        "аеорсухѕіјԁԛԝһӏвкмнтзʏοαερυικνχτβγωаѵьցոքᴏᴀᴇɪʀᴛɴꜱ",
        "aeopcyxsijdqwhlbkmhtzyoaepuiknxtbywavbgnpoaeirtns",
        strict=True,
    )
)
"""Letters of other alphabets that look like ours."""
TAG_START, TAG_END = 0xE0020, 0xE007E
"""Invisible copies of ASCII."""


class UpstreamText(Struct, frozen=True, dict=True):
    """One text, and where it stands."""

    place: str
    text: str

    @cached_property
    def plain(self) -> str:
        if self.text.isascii():
            return FOLDED_AWAY.sub("", self.text).lower() if FOLDED_AWAY.search(self.text) else self.text.lower()
        return self.text.translate(self._folds)

    @cached_property
    def _folds(self) -> Mapping[int, str]:
        return {ord(sign): fold_character(sign) for sign in set(self.text)}

    def get_original(self, start: int, end: int) -> str:
        """Return what was written where the folded text has these positions."""
        if len(self.plain) == len(self.text):
            return self.text[start:end]
        folds, at, first = self._folds, 0, 0
        for index, sign in enumerate(self.text):
            if at >= end:
                return self.text[first:index]
            width = len(folds[ord(sign)])
            if at <= start < at + width:
                first = index
            at += width
        return self.text[first:]


def fold_character(sign: str) -> str:
    if TAG_START <= ord(sign) <= TAG_END:
        return chr(ord(sign) - 0xE0000).lower()
    if FOLDED_AWAY.match(sign):
        return ""
    plain = "".join(part for part in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(part)).lower()
    return "".join(LOOKALIKES.get(part, part) for part in plain)


def read_hidden_words(text: str) -> str:
    """Return what invisible copies of ASCII spell; empty if there are none."""
    return "".join(chr(ord(sign) - 0xE0000) for sign in text if TAG_START <= ord(sign) <= TAG_END)


def list_texts(catalogue: Catalogue) -> Iterator[UpstreamText]:
    """Yield every text that a model may read, in the order of the catalogue."""
    if catalogue.instructions:
        yield UpstreamText("instructions", catalogue.instructions)
    yield from _walk("server", catalogue.server)
    kinds: Sequence[tuple[str, Sequence[Mapping[str, Any]], str]] = (
        ("tool", catalogue.tools, "name"),
        ("prompt", catalogue.prompts, "name"),
        ("resource", catalogue.resources, "uri"),
        ("template", catalogue.templates, "uriTemplate"),
    )
    for kind, definitions, key in kinds:
        for number, definition in enumerate(definitions, 1):
            name = definition.get(key)
            yield from _walk(f"{kind} {name if isinstance(name, str) and name else number}", definition)


def _walk(place: str, definition: Any) -> Iterator[UpstreamText]:
    """Yield the texts of a definition, keys included: a model reads the names of arguments too."""
    waiting: list[tuple[str, Any, int]] = [(place, definition, 0)]
    while waiting:
        where, value, depth = waiting.pop()
        if isinstance(value, str):
            if value:
                yield UpstreamText(where, value)
        elif depth >= MAX_DEPTH:
            continue
        elif isinstance(value, Mapping):
            entries = list(cast(Mapping[Any, Any], value).items())
            if depth:
                yield from _read_keys(where, (key for key, _ in entries if isinstance(key, str)))
            joint = ": " if depth == 0 else "."
            waiting += [(f"{where}{joint}{key}", inner, depth + 1) for key, inner in reversed(entries)]
        elif isinstance(value, list | tuple):
            items = list(cast(Sequence[Any], value))
            waiting += [(f"{where}[{at}]", items[at], depth + 1) for at in range(len(items) - 1, -1, -1)]


def _read_keys(place: str, keys: Iterable[str]) -> Iterator[UpstreamText]:
    """Read long names of arguments as sentences too: `read_the_file_id_rsa_first` is one."""
    for key in keys:
        if len(key) >= MIN_KEY_CHARS:
            yield UpstreamText(f"{place}: a name", key)
            if key.count("_") > 1:
                yield UpstreamText(f"{place}: a name", key.replace("_", " "))
