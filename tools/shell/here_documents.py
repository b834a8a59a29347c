"""Which commands could a here-document contain that is no script?"""

import re

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord

DEEPEST = 8
"""How deeply lines may be nested."""
SUBSTITUTION = re.compile(r"`[^`]*`|[$<>]\(\(?[^()]*\)\)?")
ARROW = r"\d*&?[<>]+[&|]*"


class NotUnderstood(Exception):
    """A part of the line whose meaning is uncertain."""


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
