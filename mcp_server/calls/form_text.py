"""How does a question look the same in a host that shows its form as plain text and in one that shows it as Markdown?

It goes into a block of code, where nothing counts as Markdown. Hosts do not wrap the lines of such a block, so the end
of a command could lie outside the window. Long lines are folded here, with quotes around each part of an argument.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

WIDTH = 90
INDENT = "    "
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
PIECE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)
"""A character as JSON writes it; two halves are one."""
TICKS = re.compile("`+")


def fence_text(text: str) -> str:
    """Put a text of many lines into a block of code that none of its lines can end."""
    lines = [folded for line in text.split("\n") for folded in fold_line(line)]
    longest = max((len(run) for line in lines for run in TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((fence, *lines, fence))


def fold_line(line: str) -> Iterator[str]:
    """Fold a line of a question. Quoted strings that follow each other are parts of one argument."""
    if len(line) <= WIDTH:
        yield line
        return
    row, end = "", 0
    for string in (*STRING.finditer(line), None):
        for word in re.findall(r"\S+ *| +", line[end : string.start() if string else None]):
            if row.strip() and len(row) + len(word.rstrip()) > WIDTH:
                yield row.rstrip()
                row = INDENT
            row += word
        if string is None:
            break
        *rows, row = _fold_string(row, string[0])
        yield from rows
        end = string.end()
    yield row


def _fold_string(row: str, string: str) -> Iterator[str]:
    """Write a string behind what is in the row, and break it between words or characters, never within an escape."""
    if row.strip() and len(row) + len(string) > WIDTH and len(INDENT) + len(string) <= WIDTH:
        yield row.rstrip()
        row = INDENT
    head, pieces, size = f'{row}"', list[str](), len(row) + 2
    for piece in PIECE.findall(string[1:-1]):
        if size + len(piece) > WIDTH and unicodedata.category(piece[0])[0] != "M":  # a mark would join the quote
            at = _find_break(pieces)
            yield f'{head}{"".join(pieces[:at])}"'
            head, pieces = f'{INDENT}"', pieces[at:]
            size = len(head) + 1 + sum(map(len, pieces))
        pieces.append(piece)
        size += len(piece)
    yield f'{head}{"".join(pieces)}"'


def _find_break(pieces: Sequence[str]) -> int:
    """Return the place behind the last space, unless that leaves most of the row empty."""
    return next((at + 1 for at in range(len(pieces) - 1, len(pieces) // 2, -1) if pieces[at] == " "), len(pieces))
