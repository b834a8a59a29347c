"""Does this command write out code for another one, in plain sight? Then the other one runs no unknown code.

It may print text of the line, or files of the workspace, with a program that does nothing else.
"""

import re
from collections.abc import Sequence

from mcp_server.model.shell import ShellCommand, ShellWord, WordRole
from tools.shell.program_arguments import is_certain, read_argument
from tools.shell.verdicts import NeedsApproval

OWN_FILE = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))(?![-~/])[\w./@+-]+")
PRINTING = frozenset(("echo", "printf"))
SHOWING = {
    "cat": re.compile("-[nsu]+"),
    **dict.fromkeys(("head", "tail"), re.compile(r"-n|-c|-[nc]?\+?\d+|\+?\d+")),
}
INPUT_SIGN = re.compile(r"0?<(?![>&])")
DOCUMENT_SIGN = re.compile(r"0?<<(?!<)")
TEXT_SIGN = re.compile("0?<<<")


def is_plain_source(command: ShellCommand) -> bool:
    """True if what it prints is written out in the line, or in files of the workspace below the current folder."""
    if command.nested or command.expansions:
        return False
    try:
        words = [read_argument(word) for word in command.words if word.role is WordRole.WORD]
    except NeedsApproval:
        return False
    if not words or not all(map(is_certain, words)):
        return False
    inputs = list_inputs(command.words)
    if words[0] in PRINTING:
        return not inputs and not (words[0] == "printf" and words[1:2] and words[1].startswith("-"))
    if words[0] not in SHOWING:
        return False
    files = [word for word in words[1:] if not SHOWING[words[0]].fullmatch(word)]
    if files:
        return not inputs and all(map(OWN_FILE.fullmatch, files))
    return bool(inputs) and all(map(is_plain_input, inputs))


def list_inputs(words: Sequence[ShellWord]) -> list[ShellWord]:
    """List the redirections that its input comes from."""
    return [word for word in words if word.role is WordRole.TARGET and INPUT_SIGN.match(word.source)]


def is_plain_input(target: ShellWord) -> bool:
    """True for a here-document, text of the line, and a file of the workspace."""
    if DOCUMENT_SIGN.match(target.source):
        return True
    if TEXT_SIGN.match(target.source):
        return target.known
    return target.known and OWN_FILE.fullmatch(target.text) is not None
