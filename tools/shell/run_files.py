"""Which files of the workspace would this line run? An approval of the line is bound to what they contain."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile

from mcp_server.model.shell import ShellLine, WordRole
from mcp_server.model.tools import Arguments
from tools.shell.lines import read_line

MOST = 20
RUNNING = """
. source bash sh dash zsh ksh fish python python3 node deno bun ruby perl php lua tclsh awk gawk sed make just task
"""
RUNNERS = frozenset(RUNNING.split())
"""Programs whose first argument may be a file of code."""
CODE = re.compile(r".*\.(?:sh|bash|zsh|fish|py|pyz|js|mjs|cjs|ts|mts|rb|pl|php|lua|tcl|mk|awk|sed|ps1|jar|cmake)")
PROJECT_FOLDERS = (".venv/bin", "venv/bin")
"""Where a line that does not only read finds its programs first."""
LINE_OPTION = re.compile("-[a-z]*c")


def list_run_files(args: Arguments) -> list[str]:
    """List them below the workspace. In which folder a shell that stays open runs the line, only its facts say."""
    kept = (args.get("bash_id") or args.get("shell_id")) and not args.get("run_in_background")
    return [] if kept else find_run_files(args["command"], args.get("exec_dir") or ".")


def find_run_files(text: str, folder: str) -> list[str]:
    """Find them in the order of the line. Data that a line reads is not among them."""
    line = read_line(text)
    return [*dict.fromkeys(_find_files(line, folder) if line is not None else ())][:MOST]


def _find_files(line: ShellLine, folder: str) -> Iterator[str]:
    for command in line.list_commands():
        words = [word.text for word in command.words if word.role is WordRole.WORD and word.known]
        if words[:1] == ["cd"] and len(words) == 2:
            folder = posixpath.join(folder, words[1])
        yield from _find_in_command(words, folder)


def _find_in_command(words: Sequence[str], folder: str) -> Iterator[str]:
    for at, word in enumerate(words):
        name = posixpath.basename(word)
        if at == 0 and "/" not in word:
            yield from (f"{place}/{word}" for place in PROJECT_FOLDERS)
        if (at == 0 and "/" in word) or (word[:1] != "-" and (CODE.fullmatch(word) or _is_program(word))):
            yield posixpath.normpath(posixpath.join(folder, word))
        if name in RUNNERS:
            rest = [*dropwhile(lambda one: one.startswith("-"), words[at + 1 :])]
            if LINE_OPTION.fullmatch(words[at + 1] if at + 1 < len(words) else "") and rest:
                nested = read_line(rest[0])
                yield from _find_files(nested, folder) if nested is not None else ()
            elif rest:
                yield posixpath.normpath(posixpath.join(folder, rest[0]))


def _is_program(word: str) -> bool:
    """True for what another program may start, as in `sudo ./release`."""
    return word.startswith(("./", "../")) or "/.bin/" in word or "/bin/" in word
