"""What is a word in a search? The one definition that the index, the memory and their queries share.

A word is a run of letters, digits and underscores, whatever its case. `parseHttpRequest` and `parse_http_request` are
words with parts, and are found by their parts as well.
"""

import re
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

from msgspec import Struct

RUN = re.compile(r"\w+")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
ASKED = re.compile(r'"([^"]*)"|(\w+)(\*?)')
LONGEST = 64
"""A longer run is data rather than a word, and is known by its beginning."""
MOST_TERMS = 20


@lru_cache(maxsize=1 << 14)
def split_parts(run: str) -> tuple[str, ...]:
    """`parseHTTPRequest2` -> parse, http, request, 2; none if the run has only one part."""
    pieces = PART.findall(run) if run.isascii() else [piece for piece in run.split("_") if piece]
    parts = tuple(piece.casefold() for piece in pieces)
    return parts if parts != (run.casefold(),) else ()


def find_words(text: str) -> set[str]:
    """Return every word of a text and every part of one."""
    return expand_words(set(RUN.findall(text)))


def expand_words(runs: Iterable[str]) -> set[str]:
    words: set[str] = set()
    for run in runs:
        short = run[:LONGEST]
        words.add(short.casefold())
        words.update(split_parts(short))
    return words


class Term(Struct, frozen=True):
    """One search term."""

    text: str
    """As it was written, in lower case; it identifies a symbol of that name."""
    needs: tuple[str, ...] = ()
    """The words that must occur."""
    starts: str = ""
    """The beginning that some word must have."""
    phrase: str = ""
    """What must be on one line literally, except for its case."""

    def is_on_line(self, words: Set[str], line: str) -> bool:
        """True if the term is on this line, given as its words and as its text in lower case."""
        if self.phrase:
            return self.phrase in line
        if self.starts:
            return any(word.startswith(self.starts) for word in words)
        return self.text in words or all(need in words for need in self.needs)


class Query(Struct, frozen=True):
    """A parsed query: the search treats nothing in it as a command."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> "Query":
        return cls(tuple(dict.fromkeys(_parse_terms(text)))[:MOST_TERMS])

    @property
    def needs(self) -> tuple[str, ...]:
        """Words that a text with every term in it certainly holds."""
        return tuple(dict.fromkeys(need for term in self.terms for need in term.needs))

    @property
    def starts(self) -> tuple[str, ...]:
        """Beginnings of words that it certainly holds."""
        return tuple(dict.fromkeys(term.starts for term in self.terms if term.starts))


def _parse_terms(text: str) -> Iterator[Term]:
    for quoted, run, star in ASKED.findall(text):
        if phrase := quoted.casefold().replace("\n", " ").strip():
            yield _parse_phrase(phrase)
        elif star:
            yield Term(run[:LONGEST].casefold(), starts=run[:LONGEST].casefold())
        elif run:
            short = run[:LONGEST]
            yield Term(short.casefold(), split_parts(short) or (short.casefold(),))


def _parse_phrase(phrase: str) -> Term:
    """The first word may continue to the left and the last one to the right; those between are whole."""
    runs = [(match.group()[:LONGEST], match.end() < len(phrase)) for match in RUN.finditer(phrase) if match.start()]
    starts = next((run for run, whole in runs if not whole), "")
    return Term(phrase, tuple(run for run, whole in runs if whole), starts, phrase)
