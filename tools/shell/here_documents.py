"""Which commands could a here-document contain that is no script?"""

import re
from collections.abc import Sequence

from msgspec import Struct

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord

DEEPEST = 8
"""How deeply lines may be nested."""
SUBSTITUTION = re.compile(r"`[^`]*`|[$<>]\(\(?[^()]*\)\)?")
ARROW = r"\d*&?[<>]+[&|]*"


class NotUnderstood(Exception):
    """A part of the line whose meaning is uncertain."""


class ScannedDocument(Struct, frozen=True):
    expansions: Sequence[str]
    substitutions: Sequence[tuple[int, str]]
    """The lines in `$( )` and backticks, and where they begin."""


PIECE = re.compile(
    r"[^\\$`]+|\\.|\\\Z"
    r"|(?P<expansion>\$\(\([^()`'\"\\]*\)\)|\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])|\$\{[^{}`'\"\\()$]*\})"
    r"|\$\((?!\()(?P<command>[^()`'\"\\#<]*)\)|`(?P<old>[^`'\"\\#<]*)`"
    r"|\$(?![\w({\['\"@*#?$!-])",
    re.DOTALL,
)
"""Text, an escape, or an expansion that everybody reads in the same way. Quotes mean nothing in a document."""


def scan_document(text: str) -> ScannedDocument | None:
    """Read what bash expands in a document whose delimiter is not quoted; None if that is uncertain."""
    expansions, substitutions, at = list[str](), list[tuple[int, str]](), 0
    while at < len(text):
        piece = PIECE.match(text, at)
        if piece is None:
            return None
        if piece["expansion"]:
            expansions.append(piece["expansion"])
        for group in ("command", "old"):
            if piece[group] is not None:
                substitutions.append((piece.start(group), piece[group]))
        at = piece.end()
    return ScannedDocument(expansions, substitutions)


def read_roughly(text: str) -> ShellLine:
    """Read a document that is no script: everything in it that could be a command counts as one."""
    if "$(" in text and text.count("(") > text.count(")"):
        raise NotUnderstood
    # What a substitution prints could be any word; what runs in it counts as well.
    outer = text
    for _ in range(DEEPEST):
        outer = SUBSTITUTION.sub("$", outer)
    both = f"{outer}\n{text}".replace("\\\n", "")
    found: dict[tuple[str, ...], None] = {}
    for pattern in (ARROW, f"{ARROW}\\s*[^\\s;&|()`]*"):
        for part in re.split(r"[;&|()`\n]", re.sub(pattern, " ", both)):
            found[tuple(re.sub(r"['\"\\]", "", part).split())] = None
    commands = [ShellCommand(tuple(ShellWord(word, word) for word in words)) for words in found if words]
    return ShellLine(tuple(commands), False, False)
