"""May these programs run with these words? Those that are judged by more than a list of options.

They write, or start another program or a line of shell, so the judge of the whole line has a say.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from mcp_server.model.text import quote_text
from tools.shell.archives import find_packed_file, find_split_prefix, find_zipped_files
from tools.shell.awk_programs import find_awk_danger
from tools.shell.compilers import COMPILERS, find_compiled_file
from tools.shell.interpreters import INTERPRETERS
from tools.shell.program_arguments import is_certain, may_become_option, show_argument
from tools.shell.program_effects import describe_program, describe_script
from tools.shell.project_programs import BY_NPX
from tools.shell.sed_scripts import read_sed_call
from tools.shell.verdicts import CommandKind, NeedsApproval
from tools.shell.word_values import OWN_TEMPORARY, TEMPORARY

ACTIVATE = re.compile(r"(?:\./)?\.?venv/bin/activate")
SHELLS = frozenset(("bash", "sh", "dash"))
TRAPPED = re.compile("(?:SIG)?(?:EXIT|INT|TERM|HUP|QUIT)|0")
RM_FLAGS = re.compile("-[rfRv]+|--")


class WholeLine(Protocol):
    left: str
    is_fed: bool
    written: set[str]

    def judge_program(self, words: Sequence[str]) -> CommandKind: ...

    def judge_writing(self, *paths: str) -> CommandKind: ...

    def judge_inner_text(self, text: str, has_scope: bool = False) -> CommandKind: ...

    def require_project_folder(self, part: str) -> None: ...

    def require_workspace(self, program: str, words: Sequence[str]) -> None: ...

    def has_module(self, name: str) -> bool: ...


def judge_awk(_: "WholeLine", words: Sequence[str]) -> CommandKind:
    if danger := find_awk_danger(words):
        raise NeedsApproval(f"`awk` may do more than print: {quote_text(show_argument(danger))}")
    return CommandKind.READS


def judge_sed(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    call = read_sed_call(words)
    if isinstance(call, str):
        raise NeedsApproval(f"`sed` may do more than edit text: {quote_text(show_argument(call))}")
    return line.judge_writing(*call.files) if call.in_place else CommandKind.READS


def judge_tee(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    return line.judge_writing(*(word for word in words if word not in ("-a", "--append")))


def judge_source(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    if len(words) != 1 or not ACTIVATE.fullmatch(words[0]):
        raise NeedsApproval(describe_script(show_argument(words[0])) if words else "`source` names no file")
    line.require_project_folder(words[0])
    return CommandKind.BUILDS


def judge_shell(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    """Judge the line in `bash -c LINE`; what follows it are its arguments. `bash -n FILE` runs nothing."""
    if words[:1] == ("-n",) and len(words) > 1 and not any(map(_may_be_option, words[1:])):
        return CommandKind.READS
    if len(words) < 2 or not re.fullmatch("-[eux]*c", words[0]) or not is_certain(words[1]):
        raise NeedsApproval(_describe_shell(words))
    return line.judge_inner_text(words[1])


def judge_trap(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    """Judge what runs when the line ends, wherever it is by then."""
    if not words or not is_certain(words[0]) or not all(TRAPPED.fullmatch(word) for word in words[1:]):
        raise NeedsApproval("what `trap` runs is not known")
    if words[0] in ("-", ""):
        return CommandKind.READS
    before, line.left = line.left, line.left or "`trap`"
    try:
        return line.judge_inner_text(words[0], has_scope=True)
    finally:
        line.left = before


def judge_rm(_: "WholeLine", words: Sequence[str]) -> CommandKind:
    """Judge `rm -rf "$d"` after `d=$(mktemp -d)`. Whatever else it deletes, the user is asked about."""
    paths = [word for word in words if not RM_FLAGS.fullmatch(word)]
    if not paths or not all(map(_is_own_temporary, paths)):
        raise NeedsApproval(describe_program(("rm", *words)))
    return CommandKind.BUILDS


def judge_mktemp(_: "WholeLine", words: Sequence[str]) -> CommandKind:
    if not TEMPORARY.fullmatch(" ".join(("mktemp", *words))) or not all(map(is_certain, words)):
        raise NeedsApproval(describe_program(("mktemp", *words)))
    return CommandKind.BUILDS


def judge_yes(_: "WholeLine", __: Sequence[str]) -> CommandKind:
    return CommandKind.READS


def judge_compiler(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    written = find_compiled_file(words)
    if written is None or not words:
        raise NeedsApproval("a compiler with these words may do more than compile a file")
    return line.judge_writing(written)


def judge_interpreter(line: "WholeLine", words: Sequence[str], name: str) -> CommandKind:
    """Judge code that comes from elsewhere than a file of the workspace or an option."""
    call = INTERPRETERS[name](words)
    if call is None:
        raise NeedsApproval(describe_program((name, *words)))
    is_own = bool(call.module) and call.searches and line.has_module(call.module)
    if not (call.rewrites or is_own or call.script in line.written or (call.reads_input and line.is_fed)):
        raise NeedsApproval(describe_program((name, *words)))
    line.judge_writing(*call.rewrites)
    line.require_workspace(name, call.rest)
    return CommandKind.BUILDS


def judge_tar(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    packed = find_packed_file(words)
    if packed is None:
        raise NeedsApproval(describe_program(("tar", *words)))
    if not packed:
        line.written.clear()  # the archive may hold a file of that name
    return line.judge_writing(*filter(None, (packed,)))


def judge_zip(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    zipped = find_zipped_files(words)
    if zipped is None:
        raise NeedsApproval(describe_program(("zip", *words)))
    return line.judge_writing(*zipped)


def judge_split(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    prefix = find_split_prefix(words)
    if prefix is None:
        raise NeedsApproval(describe_program(("split", *words)))
    return line.judge_writing(prefix)


STRIP_FLAGS = re.compile("-[gsSxXd]|--strip-(?:all|debug|unneeded)")


def judge_strip(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    """Judge `strip -o NEW FILE`. Without `-o`, the file itself would be changed."""
    rest = [word for word in words if not STRIP_FLAGS.fullmatch(word)]
    if len(rest) != 3 or rest[0] != "-o" or not all(map(is_certain, rest)) or rest[2].startswith(("-", "@")):
        raise NeedsApproval(describe_program(("strip", *words)))
    return line.judge_writing(rest[1])


def judge_npx(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    """Judge `npx tsc`; with others, npx installs what they name. Where nobody types, it takes yes anyway."""
    rest = words[1:] if words[:1] in (("--no-install",), ("--no",), ("--yes",), ("-y",)) else words
    if not rest or rest[0] not in BY_NPX:
        raise NeedsApproval(describe_program(("npx", *words)))
    return line.judge_program(rest)


def judge_bundle(line: "WholeLine", words: Sequence[str]) -> CommandKind:
    """Judge what `bundle exec` starts."""
    if words[:1] == ("exec",) and len(words) > 1:
        line.judge_program(words[1:])
        return CommandKind.BUILDS
    raise NeedsApproval(describe_program(("bundle", *words)))


def judge_package_runner(line: "WholeLine", words: Sequence[str], runner: str) -> CommandKind:
    """Judge what `uv run` or `poetry run` starts."""
    if words[:1] != ("run",) or len(words) < 2:
        raise NeedsApproval(describe_program((runner, *words)))
    line.judge_program(words[1:])
    return CommandKind.BUILDS


def _is_own_temporary(path: str) -> bool:
    return path.startswith(OWN_TEMPORARY) and is_certain(path) and ".." not in path.split("/")


def _may_be_option(word: str) -> bool:
    return word.startswith(("-", "+")) or may_become_option(word)


def _describe_shell(words: Sequence[str]) -> str:
    """Say why `bash` with these words asks."""
    if words and is_certain(words[0]) and words[0][:1] not in "-+":
        return describe_script(words[0])
    if words and re.fullmatch("-[a-z]*c", words[0]):
        return "it starts a shell with commands that are only known when the line runs"
    if words:
        return f"it starts a shell with {quote_text(show_argument(words[0]))}, which is not known to be harmless"
    return "it starts a shell that runs what it reads from its input"


JUDGED: Mapping[str, Callable[[WholeLine, Sequence[str]], CommandKind]] = {
    "trap": judge_trap,
    "rm": judge_rm,
    "mktemp": judge_mktemp,
    "yes": judge_yes,
    **dict.fromkeys(("awk", "gawk", "mawk"), judge_awk),
    "sed": judge_sed,
    "tee": judge_tee,
    **dict.fromkeys((".", "source"), judge_source),
    **dict.fromkeys(SHELLS, judge_shell),
    "npx": judge_npx,
    "bundle": judge_bundle,
    **{
        runner: partial(judge_package_runner, runner=runner)
        for runner in ("uv", "poetry", "hatch", "pdm", "pipenv", "rye")
    },
    **dict.fromkeys(COMPILERS, judge_compiler),
    **{name: partial(judge_interpreter, name=name) for name in INTERPRETERS},
    "tar": judge_tar,
    "zip": judge_zip,
    "split": judge_split,
    "strip": judge_strip,
}
