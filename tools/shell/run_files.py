"""Which files of the workspace may this line run? An approval of the line is bound to what they contain.

Nothing here tries to follow the line as bash would. Every word of it, and every piece of one, may be the name of a file
or of a folder in which others are looked for. What could name a file that is nowhere in the line is said instead.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping

from mcp_server.model.processes import PROJECT_PROGRAMS
from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.tools import Arguments, RunFiles
from tools.shell.lines import read_line
from tools.shell.runners import DATA, DEFAULTS, PYTHON, judge_run_line

STANDS_IN = "the shell stands in"
"""The fact that says in which folder a shell that stays open runs the line."""
VARIABLES = "its variables"
PIECE = re.compile(r"""[^\s'"`;&|<>(){}$=:,!\\*?\[\]~#@%]+""")
MOST_NAMES = 400
DEEPEST = 4
BETWEEN_WORDS = frozenset(" \t\n;&|$`<>")


def list_run_files(args: Arguments, facts: Mapping[str, str]) -> RunFiles:
    run = find_run_files(args["command"], facts.get(STANDS_IN) or args.get("exec_dir") or ".")
    if " PATH=" in facts.get(VARIABLES, "") and not run.untold:
        return run._replace(untold="earlier lines have changed where this shell looks for programs")
    return run


def list_typed_files(args: Arguments, facts: Mapping[str, str]) -> RunFiles:
    """What is typed may be a line, a part of one, or the answer to a program that runs something then."""
    run = find_run_files(args.get("content", "").strip() or ":", facts.get(STANDS_IN, "."))
    return run if run.untold else run._replace(untold="what is typed may become part of any command", loads=True)


def find_run_files(text: str, folder: str) -> RunFiles:
    line = read_line(text)
    if line is None:
        return RunFiles(folder, (), (), True, "bash may read the line differently than it looks", True)
    names = dict.fromkeys(_list_names(text, line, DEEPEST))
    programs = {name.rpartition("/")[2] for name in names}
    names |= dict.fromkeys(default for one in programs for default in DEFAULTS.get(one, ()))
    if any(map(PYTHON.fullmatch, programs)):
        names |= dict.fromkeys(f"{one.replace('.', '/')}{end}" for one in [*names] for end in (".py", "/__main__.py"))
    runs = judge_run_line(line)
    untold = runs.untold or ("it has too many words" if len(names) > MOST_NAMES else "")
    loads = runs.loads or bool(untold)
    alone = line.plain and all(text.count(posixpath.basename(one)) == 1 for one in runs.scripts)
    return RunFiles(folder, tuple(names)[:MOST_NAMES], PROJECT_PROGRAMS, loads, untold, loads, runs.scripts, alone)


def _list_commands(line: ShellLine, depth: int) -> Iterator[ShellCommand]:
    """Also those in a word that may be a line of its own, as in `bash -c LINE` or `eval LINE`."""
    for command in line.list_commands(documents=True):
        yield command
        for word in command.words if depth and not _takes_text(command) else ():
            inner = read_line(word.text) if word.known and set(word.text) & BETWEEN_WORDS else None
            if inner is not None:
                yield from _list_commands(inner, depth - 1)


def _takes_text(command: ShellCommand) -> bool:
    """True if its words are texts and no lines, such as the message of a commit."""
    program = _get_program(command)
    words = command.list_texts()
    return program is not None and (program.text in DATA or (program.text in ("git", "gh") and "-c" not in words))


def _list_names(text: str, line: ShellLine, depth: int) -> Iterator[str]:
    """List every word and every piece of one."""
    yield from PIECE.findall(text)
    for command in _list_commands(line, depth):
        for word in command.words:
            plain = word.text
            if "\0" not in plain and len(plain) < 1000:
                yield plain
                yield from (piece for piece in re.split(r"[=:,@!]", plain) if piece)
                yield from PIECE.findall(plain)


def _get_program(command: ShellCommand) -> ShellWord | None:
    words = [word for word in command.words if word.role is WordRole.WORD]
    return words[0] if words else None
