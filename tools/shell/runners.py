"""Does a command run only what its words name?

A closed list. A command that is missing here, or that has words which are not known here, may load files that the line
does not name. What is listed as data runs nothing; the rest runs code of the workspace, which may load more of it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from mcp_server.model.text import quote_text
from tools.shell.expansions import require_plain_expansion
from tools.shell.interpreters import INTERPRETERS
from tools.shell.known_commands import BUILDS, READS, allow_only
from tools.shell.line_judge import PROJECT_PROGRAM, LineJudge, strip_keywords
from tools.shell.lines import read_line
from tools.shell.program_arguments import (
    EXPANDED,
    QUOTED,
    SOME_UNKNOWN,
    Fits,
    is_certain,
    may_become_option,
    may_have_any_words,
    read_argument,
    show_argument,
)
from tools.shell.starters import STARTERS, Starts, skip_options
from tools.shell.variables import judge_assignment, judge_variable
from tools.shell.verdicts import CommandKind, NeedsApproval


class Runs(NamedTuple):
    untold: str = ""
    """Why it may run files that its words do not name; empty if it may not."""
    loads: bool = False
    """It runs code of the workspace."""
    scripts: tuple[str, ...] = ()
    """The files that it runs, which have to be there."""


NOTHING = Runs()
DEEPEST = 4
SYSTEM = re.compile(r"/(?:usr/)?(?:local/)?s?bin/([\w.+-]+)")
MOVING = frozenset(("cd", "pushd", "popd"))
SHELL = re.compile(r"(?:ba|da|z|k)?sh")
PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
INTERPRETER = re.compile(r"ruby|perl[\d.]*|lua[\d.]*|php[\d.]*|tclsh[\d.]*|node(?:js)?|julia|Rscript|tsx|ts-node")
DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local"))

ANY_WORDS = """
basename base64 bunzip2 bzip2 cat chgrp chmod chown cksum clang-format cmp col colrm column comm cp curl cut date dd df
diff dirname du echo expand false file fmt fold gofmt grep gunzip gzip head iconv join jq kill killall link ln ls lsof
md5sum mkdir mkfifo mv nl nm numfmt objdump od paste pgrep pkill pr ps pwd readelf readlink realpath rev rm rmdir
sha256sum shellcheck shopt shred shuf size sleep ss stat strip tac tail tee touch tr true truncate tsort ulimit umask
unexpand uniq unlink unxz wc which xmllint xz yq zcat zstd
"""
COMPILERS = "gcc g++ cc c++ clang clang++"
DATA: Mapping[str, Fits] = {
    **dict.fromkeys(ANY_WORDS.split(), may_have_any_words),
    "tar": allow_only(
        "-[cxtruzjJvfpkOhmC]+",
        "--(?:create|extract|list|file|gzip|bzip2|xz|verbose|exclude|directory|strip-components)(?:=.*)?",
    ),
    "unzip": allow_only("-[lqonujdZ1v]+"),
    "zip": allow_only("-[rqujmxy0-9]+"),
    "wget": allow_only(
        r"-(?!e)\w+", "--(?:quiet|no-verbose|output-document|timeout|tries|continue|spider|header)(?:=.*)?"
    ),
    "rsync": allow_only(
        r"-[avzrltpgoDnhPiuxHAXSc0-9]+",
        r"--(?:delete(?:-\w+)?|exclude|include|dry-run|progress|stats|archive|verbose|recursive|checksum)(?:=.*)?",
        "--(?:update|partial|compress|existing|ignore-existing|size-only)",
    ),
    **dict.fromkeys(
        COMPILERS.split(),
        allow_only(
            r"-[cgSEvs]|-g\d|-o.*|-W(?![lap],).*|-[ODUILlm].*|-f(?!plugin)[\w-]+(?:=[\w-]+)?|-std=.*",
            "-(?:shared|static|pthread|pedantic|M[MDPFTQ]?)|--version",
        ),
    ),
    **dict.fromkeys(
        ("docker", "podman"),
        lambda words: words[:1] != () and words[0] in ("ps", "images", "logs", "inspect", "version", "info", "stats"),
    ),
    "kubectl": lambda words: words[:1] != () and words[0] in ("get", "describe", "logs", "version"),
    # `-a` and `-k` would turn words into settings for the programs that follow.
    "set": lambda words: all(
        re.fullmatch("[-+][efuxvnCbBo]+|pipefail|err(?:exit|trace)|nounset|[xv]trace", word) for word in words
    ),
    "find": lambda words: not any(re.match("-(?:exec|ok)", word) or may_become_option(word) for word in words),
}
"""Programs for which every file is data, with the words for which that is so. An argument such as `@file` can stand for
more options."""
TAKES_MORE = frozenset(("tar", "unzip", "zip", "wget", "rsync", *COMPILERS.split()))

LOADING = frozenset((*INTERPRETERS, "git", "npm", "make", "pip", "cargo", "go", "rustc", "swift", "javac"))
PLAIN = frozenset((*DATA, *READS, "awk", "gawk", "mawk", "sed")) - LOADING
"""Programs that run no code of the workspace with the words that the judge of lines lets through."""

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile")
PACKAGE = ("package.json", ".npmrc", ".yarnrc.yml")
DEFAULTS: Mapping[str, Sequence[str]] = {
    "make": MAKEFILES,
    "just": ("justfile", "Justfile", ".justfile"),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), PACKAGE),
    **dict.fromkeys(("docker", "podman", "docker-compose"), COMPOSE),
}
"""Files that a program runs without being told, to be named in the question. Only of `make` is this all."""

STARTING: Mapping[str, Starts] = {
    **STARTERS,
    **dict.fromkeys(("nohup", "setsid", "exec", "builtin"), skip_options("(?!)")),
    "sudo": skip_options("-[nEHSk]+", "-[ug]"),
    "ionice": skip_options(r"-[cn]\d+|-t", "-[cn]"),
    "taskset": skip_options("(?!)", positions=1),
    "chrt": skip_options("-[orfbi]", positions=1),
    "flock": skip_options("-[nsxeo]", "-w", 1),
}
"""Programs that start another one. The judge of lines does not know those of ours: what they start, it asks about."""


def judge_run_line(line: ShellLine, depth: int = DEEPEST) -> Runs:
    """Judge every command in the line. What a here-document says, only a program that reads it could run."""
    return _join([_judge_command(command, depth) for command in line.commands])


def _join(found: Sequence[Runs]) -> Runs:
    untold = next((one.untold for one in found if one.untold), "")
    return Runs(untold, any(one.loads for one in found), tuple(name for one in found for name in one.scripts))


def _judge_command(command: ShellCommand, depth: int) -> Runs:
    nested = [judge_run_line(line, depth) for line in command.nested]
    try:
        kind = LineJudge().judge_command(command)
    except NeedsApproval as reason:
        return _join([*nested, _judge_unknown(command, depth, str(reason))])
    names = [word.text for word in command.words if word.role is WordRole.WORD][:1]
    own = kind is CommandKind.BUILDS and any(name not in PLAIN for name in names)
    moves = _find_untold_move(command) if names and names[0] in (*MOVING, *STARTING) else ""
    return _join([*nested, Runs(moves, own or bool(moves))])


def _judge_unknown(command: ShellCommand, depth: int, reason: str) -> Runs:
    """Judge a command that the judge of lines does not let through."""
    try:
        words = strip_keywords(command.words) if command.words else ()
        for expansion in command.expansions:
            require_plain_expansion(expansion)
    except NeedsApproval as unread:
        return Runs(str(unread), True)
    settings = [word for word in words if word.role is WordRole.ASSIGNMENT]
    plain = [word for word in words if word.role is WordRole.WORD]
    if any("$((" in word.source or "$[" in word.source for word in words):
        return Runs(reason, True)
    exports = bool(plain)
    if wrong := next((word for word in settings if not _is_plain_setting(word, exports)), None):
        return Runs(f"{quote_text(wrong.source)} may set what decides which program or file runs", True)
    if not plain or plain[0].text in DECLARING:
        return NOTHING
    if plain[0].text in MOVING:
        moves = _find_untold_move(command)
        return Runs(moves, bool(moves))
    fed = [word for word in words if word.role is WordRole.TARGET and word.source.lstrip("0").startswith("<")]
    return judge_run_program([_read_word(word) for word in plain], depth, fed)


def _is_plain_setting(word: ShellWord, exported: bool) -> bool:
    try:
        judge_assignment(word, exported)
    except NeedsApproval:
        return False
    return True


def _read_word(word: ShellWord) -> str:
    try:
        return read_argument(word)
    except NeedsApproval:
        return SOME_UNKNOWN + word.source


def judge_run_program(words: Sequence[str], depth: int, fed: Sequence[ShellWord] = ()) -> Runs:
    """`fed`: what its input is redirected from."""
    if not is_certain(words[0]) or words[0] != show_argument(words[0]) or "{" in words[0]:
        return Runs(f"{quote_text(show_argument(words[0]))} could be any program", True)
    name, rest = words[0], tuple(words[1:])
    own = PROJECT_PROGRAM.fullmatch(name)
    system = SYSTEM.fullmatch(name) or (own if own and _find_runner(own[1]) else None)
    if "/" in name and not system:
        return Runs("", True, (name,))
    name = system[1] if system else name
    if name in DATA and DATA[name](rest) and not (name in TAKES_MORE and any(map(_may_hold_options, rest))):
        return NOTHING
    if (name in READS and READS[name](rest)) or (name in BUILDS and BUILDS[name](rest)):
        return Runs("", name not in PLAIN)
    if name in STARTING or name == "env":
        return _judge_started(name, rest, depth)
    runner = _find_runner(name)
    return runner(name, rest, fed, depth) if runner else _leave_untold(name)


def _may_hold_options(word: str) -> bool:
    return word.startswith("@") or may_become_option(word)


def _leave_untold(name: str) -> Runs:
    return Runs(f"{quote_text(name)} may load files that the line does not name", True)


def _judge_started(name: str, words: Sequence[str], depth: int) -> Runs:
    try:
        started = _skip_environment(words) if name == "env" else STARTING[name](words)
    except NeedsApproval as reason:
        return Runs(str(reason), True)
    if started is None or not depth:
        return _leave_untold(name)
    return _join([judge_run_program(one, depth - 1) for one in started])


def _skip_environment(words: Sequence[str]) -> list[tuple[str, ...]] | None:
    at = 0
    while at < len(words) and re.fullmatch(r"[A-Za-z_]\w*=.*", words[at], re.DOTALL):
        variable, _, value = words[at].partition("=")
        judge_variable(variable, value if is_certain(words[at]) else None, exported=True)
        at += 1
    return [tuple(words[at:])] if at < len(words) and words[at][:1] != "-" else None


# What does each known runner run?

Runner: TypeAlias = Callable[[str, Sequence[str], Sequence[ShellWord], int], Runs]
"""Gets its name, its words, where its input comes from, and how deep lines may still be nested."""
SHELL_FLAGS = re.compile("[-+][euxvfnb]+|--(?:norc|noprofile|posix)")
SHELL_VALUES = re.compile("[-+][euxvf]*[oO]")
SHELL_LINE = re.compile("-[euxvf]*c")
PYTHON_FLAGS = re.compile("-[uBIsSEOqb]+")
PYTHON_VALUES = re.compile("-[XW]")
SCRIPT = re.compile(r"[^-].*\.\w+", re.DOTALL)


def _run_shell(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    at = 0
    while at < len(words) and is_certain(words[at]):
        if SHELL_LINE.fullmatch(words[at]):
            return _run_text(name, words[at + 1 : at + 2], depth)
        if not (SHELL_FLAGS.fullmatch(words[at]) or SHELL_VALUES.fullmatch(words[at])):
            break
        at += 2 if SHELL_VALUES.fullmatch(words[at]) else 1
    return _run_first(name, words[at:], fed)


def _run_text(name: str, words: Sequence[str], depth: int) -> Runs:
    line = read_line(words[0]) if depth and words and is_certain(words[0]) else None
    return judge_run_line(line, depth - 1) if line is not None else _leave_untold(name)


def _run_first(name: str, words: Sequence[str], fed: Sequence[ShellWord]) -> Runs:
    """The first word is the file, or the input if there is none."""
    if not words:
        is_file = len(fed) == 1 and re.match(r"0?<(?![<&>])", fed[0].source) is not None and not is_computed(fed[0])
        untold = "" if is_file else f"{quote_text(name)} runs what it reads from its input"
        return Runs(untold, True, (fed[0].text,) if is_file else ())
    if not is_certain(words[0]) or words[0].startswith(("-", "+")):
        return _leave_untold(name)
    return Runs("", True, (words[0],))


def _run_python(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    at = 0
    while at < len(words) and (PYTHON_FLAGS.fullmatch(words[at]) or PYTHON_VALUES.fullmatch(words[at])):
        at += 2 if PYTHON_VALUES.fullmatch(words[at]) else 1
    return _run_first(name, words[at:], fed)


def _run_interpreter(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    return _run_first(name, words, fed) if not words or SCRIPT.fullmatch(words[0]) else _leave_untold(name)


def _run_program_file(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    """`awk` and `sed` run a file behind `-f`, and programs in the line that may start anything."""
    files = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-f"]
    return Runs("", True, tuple(files)) if files and all(map(is_certain, words)) else _leave_untold(name)


def _run_make(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    return Runs("", True) if all(map(is_certain, words)) else _leave_untold(name)


def _run_git(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    """Its hooks and settings lie where no call may write. Its own options can name others."""
    rest = list(words)
    while rest[:1] == ["--no-pager"] or (rest[:1] == ["-C"] and len(rest) > 1 and is_certain(rest[1])):
        del rest[: 2 if rest[0] == "-C" else 1]
    is_known = rest and is_certain(rest[0]) and not rest[0].startswith("-")
    return Runs("", True) if is_known else Runs("options of `git` may make it run something", True)


def _source(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    return _run_first(name, words, ())


def _evaluate(name: str, words: Sequence[str], fed: Sequence[ShellWord], depth: int) -> Runs:
    return _run_text(name, (" ".join(words),) if all(map(is_certain, words)) else (), depth)


RUNNERS: Sequence[tuple[re.Pattern[str], Runner]] = (
    (SHELL, _run_shell),
    (PYTHON, _run_python),
    (INTERPRETER, _run_interpreter),
    (re.compile("[gm]?awk|sed"), _run_program_file),
    (re.compile("make"), _run_make),
    (re.compile("git"), _run_git),
    (re.compile(r"\.|source"), _source),
    (re.compile("eval"), _evaluate),
)


def _find_runner(name: str) -> Runner | None:
    return next((runner for pattern, runner in RUNNERS if pattern.fullmatch(name)), None)


def _find_untold_move(command: ShellCommand) -> str:
    words = [word for word in command.words if word.role is WordRole.WORD]
    words = words[next((at for at, word in enumerate(words) if word.text in MOVING), len(words)) :]
    places = [word for word in words[1:] if not re.fullmatch(r"-[LPe@]+|--", word.text)]
    if not words or (len(places) == 1 and not is_computed(places[0]) and not re.match(r"[-+~]", places[0].text)):
        return ""
    source = " ".join(word.source for word in words)
    return f"{quote_text(source)} goes to a folder that the line does not name"


def is_computed(word: ShellWord) -> bool:
    """True if bash makes something else of the word: a value, the names that a pattern fits, a home."""
    bare = QUOTED.sub("", word.source)
    return not word.known or "$" in bare or bool(set(bare) & EXPANDED - {"["}) or "[" in bare.removeprefix("[")
