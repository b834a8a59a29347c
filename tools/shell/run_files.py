"""Which files of the workspace may this line run? An approval of the line is bound to what they contain.

Nothing here tries to follow the line as bash would. Every word of it, and every piece of one, may be the name of a file
or of a folder in which others are looked for. What could name a file that is nowhere in the line is said instead.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from mcp_server.model.processes import PROJECT_PROGRAMS
from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import quote_text
from mcp_server.model.tools import Arguments, RunFiles
from tools.shell.lines import read_line
from tools.shell.program_arguments import EXPANDED, QUOTED
from tools.shell.variables import judge_assignment
from tools.shell.verdicts import NeedsApproval

STANDS_IN = "the shell stands in"
"""The fact that says in which folder a shell that stays open runs the line."""
VARIABLES = "its variables"
PIECE = re.compile(r"""[^\s'"`;&|<>(){}$=:,!\\*?\[\]~#@%]+""")
MOST_NAMES = 400
DEEPEST = 4
DATA_PROGRAMS = """
[ basename cat chmod chown cp curl cut date dirname df diff du echo false file grep head kill ln ls mkdir mv printf pwd
readlink realpath rm rmdir sleep sort stat tail tee test touch tr true uniq wc wget which
"""
ONLY_DATA = frozenset(DATA_PROGRAMS.split())
"""Programs for which a file is data, unless it is marked as a program or named like one."""
BETWEEN_WORDS = frozenset(" \t\n;&|$`<>")
MOVING = frozenset(("cd", "pushd", "popd"))
SHELL = re.compile(r"(?:ba|da|z|k|fi|tc)?sh")
INTERPRETER = re.compile(
    r"(?:python|pypy|ruby|perl|lua|php|tclsh)[\d.]*|node(?:js)?|deno|bun|julia|Rscript|java|tsx|ts-node"
)
STARTERS = r"""
\.|source|eval|exec|command|builtin|env|xargs|parallel|nohup|timeout|nice|ionice|setsid|stdbuf|taskset|chrt|flock|script
|sudo|doas|su|time|watch|expect|make|just|task|trap
"""
RUNNER = re.compile(f"{SHELL.pattern}|{INTERPRETER.pattern}|{STARTERS}", re.VERBOSE)
"""Programs that run what a word names. If bash still has to work that word out, nobody knows which file it is."""
PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local", "env"))
FED = frozenset(("xargs", "parallel"))
"""They get words from their input."""
COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile")
PACKAGE = ("package.json", ".npmrc", ".yarnrc.yml")
PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
DEFAULTS: Mapping[str, Sequence[str]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), PACKAGE),
    **dict.fromkeys(("docker", "podman", "docker-compose"), COMPOSE),
    **dict.fromkeys(("pip", "pip3", "uv", "pipx", "poetry", "hatch", "tox"), (*PROJECT, "tox.ini")),
    **dict.fromkeys(("gradle", "gradlew"), ("build.gradle", "build.gradle.kts", "settings.gradle")),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml",)),
    **dict.fromkeys(("cmake", "ctest", "cpack"), ("CMakeLists.txt", "CMakePresets.json")),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml"),
    "terraform": ("main.tf",),
    "vagrant": ("Vagrantfile",),
}
"""The files that a program runs without being told."""


def list_run_files(args: Arguments, facts: Mapping[str, str]) -> RunFiles:
    run = find_run_files(args["command"], facts.get(STANDS_IN) or args.get("exec_dir") or ".")
    if " PATH=" in facts.get(VARIABLES, "") and not run.untold:
        return run._replace(untold="earlier lines have changed where this shell looks for programs")
    return run


def find_run_files(text: str, folder: str) -> RunFiles:
    line = read_line(text)
    if line is None:
        return RunFiles(folder, (), (), True, "bash may read the line differently than it looks")
    names = dict.fromkeys(_list_names(text, line, DEEPEST))
    programs = {name.rpartition("/")[2] for name in names}
    names |= dict.fromkeys(default for one in programs for default in DEFAULTS.get(one, ()))
    if any(map(PYTHON.fullmatch, programs)):
        names |= dict.fromkeys(f"{one.replace('.', '/')}{end}" for one in [*names] for end in (".py", "/__main__.py"))
    commands = list(_list_commands(line, DEEPEST))
    only_data = all(one is None or one.text in ONLY_DATA | MOVING for one in map(_get_program, commands))
    only_data = only_data and not any(map(_sets_unknown_variable, commands))
    untold = next((why for why in map(_find_untold, commands) if why), "")
    if FED & programs and sum(RUNNER.fullmatch(one) is not None for one in programs) > 1:
        untold = untold or "the names of the files come from another command"
    if len(names) > MOST_NAMES:
        untold = untold or "it has too many words"
    return RunFiles(folder, tuple(names)[:MOST_NAMES], PROJECT_PROGRAMS, not only_data, untold)


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
    return program is not None and (program.text in ONLY_DATA or (program.text in ("git", "gh") and "-c" not in words))


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


def _sets_unknown_variable(command: ShellCommand) -> bool:
    """True if it sets a variable, such as `BASH_ENV`, that may name a file to run."""
    settings = takewhile(lambda word: word.role in (WordRole.ASSIGNMENT, WordRole.KEYWORD), command.words)
    try:
        for word in settings:
            if word.role is WordRole.ASSIGNMENT:
                judge_assignment(word, exported=True)
    except NeedsApproval:
        return True
    return False


def _find_untold(command: ShellCommand) -> str:
    """Say why nobody can tell from the line which file this runs; empty if its words name it."""
    program = _get_program(command)
    words = [word for word in command.words if word.role in (WordRole.WORD, WordRole.TARGET)]
    if any(word.role is WordRole.ASSIGNMENT and _is_computed(word) for word in command.words) and (
        _sets_unknown_variable(command)
    ):
        return "it sets a variable that may change what runs to something that bash works out first"
    if program is None:
        return ""
    if _is_computed(program):
        return f"{quote_text(program.source)} could be any program"
    name = program.text.rpartition("/")[2]
    if name in MOVING:
        return _find_untold_move(words)
    computed = next((word for word in words if _is_computed(word)), None)
    runs = name if RUNNER.fullmatch(name) else ""
    runs = runs or next((word.text for word in words if RUNNER.fullmatch(word.text.rpartition("/")[2])), "")
    if name in DECLARING and (setting := next((word for word in command.words if _is_computed(word)), None)):
        return f"{quote_text(setting.source)} may set what decides which program runs"
    if computed is None and (why := _find_untold_script(name, words[1:])):
        return why
    if computed is not None and runs:
        return f"bash works out {quote_text(computed.source)} first, and {quote_text(runs)} may run what it names"
    return ""


def _find_untold_script(name: str, words: Sequence[ShellWord]) -> str:
    """Say why an interpreter may run something else than the file that comes first; empty if it may not."""
    plain = [word.text for word in words if word.role is WordRole.WORD]
    has_input = any(word.source.startswith("<") and not word.source.startswith("<<") for word in words)
    if SHELL.fullmatch(name) and not has_input and ("-s" in plain or all(one.startswith("-") for one in plain)):
        return f"{quote_text(name)} runs what it reads from its input"
    if INTERPRETER.fullmatch(name) and not has_input and not re.fullmatch(r"[^-].*\.\w+", plain[0] if plain else "-"):
        return f"{quote_text(name)} may load files that the line does not name"
    if name == "git" and plain and plain[0].startswith("-") and plain[0] not in ("-C", "--no-pager", "-P"):
        return "options of `git` may make it run something"
    return ""


def _find_untold_move(words: Sequence[ShellWord]) -> str:
    places = [word for word in words[1:] if not re.fullmatch(r"-[LPe@]+|--", word.text)]
    if len(places) == 1 and not _is_computed(places[0]) and not re.match(r"[-+~]", places[0].text):
        return ""
    source = " ".join(word.source for word in words)
    return f"{quote_text(source)} goes to a folder that the line does not name"


def _is_computed(word: ShellWord) -> bool:
    """True if bash makes something else of the word: a value, the names that a pattern fits, a home."""
    bare = QUOTED.sub("", word.source)
    return not word.known or "$" in bare or bool(set(bare) & EXPANDED - {"["}) or "[" in bare.removeprefix("[")
