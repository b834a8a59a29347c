"""What does an interpreter run with these words: code in the line, a file, a module, or what it reads?

Code in the line counts like a file of the workspace, in every language: it is in plain sight, and it runs in the same
sandbox. Options that load more than that are missing here, so the line asks.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from tools.shell.program_arguments import Fits, is_certain, is_pattern, may_become_option

SCRIPT = re.compile(r"(?![/-])[\w./-]+\.\w+")
TEMPORARY = re.compile(r"/tmp/(?!.*\.\.)[\w./-]+")  # noqa: S108  # the command's own
INPUT = ("", "-")
"""Instead of a file, a program reads its input."""


class CodeCall(Struct, frozen=True):
    code: bool = False
    """It runs code that is in the line."""
    checks: bool = False
    """It only checks the file's syntax."""
    script: str | None = None
    """The file that it runs; empty or a dash if it runs its input."""
    module: str = ""
    searches: bool = True
    """It looks for modules in the current folder first."""
    rewrites: tuple[str, ...] = ()
    """Files that it edits in place."""
    rest: tuple[str, ...] = ()
    """What the code gets."""

    @property
    def reads_input(self) -> bool:
        return self.script in INPUT


ReadCall = Callable[[Sequence[str]], CodeCall | None]
"""Returns None if the words may do more."""

PYTHON_FLAGS = re.compile("-[uBIsSEOPqb]+")
PYTHON_VALUES = re.compile(
    r"-X(?:dev|importtime|utf8(?:=[01])?|faulthandler|tracemalloc(?:=\d+)?|no_debug_ranges|int_max_str_digits=\d+"
    r"|warn_default_encoding|frozen_modules=(?:on|off)|cpu_count=\d+|gil=[01])"
    r"|-W(?:default|error|always|module|once|ignore)(?::[\w ]*)?(?::[A-Z]\w*)?"
)
"""Other values name a module to load, or a folder to write in."""


def read_python_call(words: Sequence[str]) -> CodeCall | None:
    at, flags = 0, ""
    while at < len(words):
        taken = "".join(words[at : at + 2]) if words[at] in ("-X", "-W") else words[at]
        if PYTHON_FLAGS.fullmatch(words[at]):
            flags += words[at]
        elif not (all(map(is_certain, words[at : at + 2])) and PYTHON_VALUES.fullmatch(taken)):
            break
        at += 2 if words[at] in ("-X", "-W") else 1
    first, rest = next(iter(words[at : at + 1]), ""), tuple(words[at + 1 :])
    if first == "-c":
        return _read_code(rest)
    if first == "-m":
        is_named = bool(rest) and is_certain(rest[0])
        return CodeCall(module=rest[0], searches=not set("IP") & set(flags), rest=rest[1:]) if is_named else None
    return _read_script(first, rest)


NODE_FLAGS = re.compile(
    r"--(?:input-type=(?:module|commonjs|module-typescript|commonjs-typescript)|enable-source-maps|no-warnings"
    r"|trace-(?:warnings|uncaught|deprecation|exit)|throw-deprecation|no-deprecation|pending-deprecation|expose-gc"
    r"|experimental-(?:strip-types|transform-types|vm-modules|test-coverage|json-modules|require-module|sqlite)"
    r"|(?:no-)?experimental-(?:global-\w+|fetch|websocket|detect-module)|preserve-symlinks|use-strict"
    r"|(?:max-old-space-size|stack-trace-limit|stack-size|unhandled-rejections|conditions)=[\w-]+)|-C=?[\w-]+"
)
NODE_LOADING = re.compile("--(?:import|require|loader|experimental-loader)|-r")
NODE_LOADED = re.compile(r"@?[\w-]+(?:/[\w.-]+)*|\./(?!.*\.\.)[\w./-]+")
"""A package that the project has installed, or a file of its own. The code could load it as well."""
NODE_CODE = frozenset(("-e", "-p", "-pe", "--eval", "--print"))
NODE_TEST = re.compile("[^-].*|--test-name-pattern=.*|--watch")


def read_node_call(words: Sequence[str]) -> CodeCall | None:
    at = 0
    while at < len(words):
        name, given, value = words[at].partition("=")
        if NODE_LOADING.fullmatch(name):
            value = value if given else next(iter(words[at + 1 : at + 2]), "")
            if not (is_certain(value) and NODE_LOADED.fullmatch(value) and is_certain(words[at])):
                return None
            at += 1 if given else 2
        elif NODE_FLAGS.fullmatch(words[at]):
            at += 1
        else:
            break
    first, rest = next(iter(words[at : at + 1]), ""), tuple(words[at + 1 :])
    if first in NODE_CODE:
        return _read_code(rest)
    if first == "--test":
        return CodeCall(code=True) if all(map(NODE_TEST.fullmatch, rest)) else None
    if first in ("--check", "-c"):
        call = _read_script(rest[0], ()) if len(rest) == 1 else None
        return CodeCall(checks=True, script=call.script) if call else None
    return _read_script(first, rest)


EDITING = {
    "perl": re.compile(r"-(?:[nplawW]|0[0-7]*|0x[0-9a-fA-F]+|l[0-7]+|C[A-Za-z0-9]*)*(?:F.*)?"),
    "ruby": re.compile(r"-(?:[nplawU]|0[0-7]*|W[0-2]?|W:no-\w+|l)*(?:F.*)?"),
}
"""Options that say how the code goes over its input, before those that take the rest of the word."""
EDITING_ENDS = re.compile(r"(?P<flags>-[nplawWU0-7]*?)(?:(?P<kept>i(?P<backup>\.\w+)?)|(?P<code>[eE]))")
"""What follows `i` in a word is the ending of a copy, so `-pie` holds no code."""
LIBRARIES = {
    "perl": re.compile(r"-[Mm]-?[A-Za-z]\w*(?:::\w+)*(?:=[\w,:]*)?"),
    "ruby": re.compile(r"-r[a-z][\w-]*(?:/[\w-]+)*"),
}
MAGIC_NAME = re.compile(r"[^|<>&]*")
"""perl starts what a file name ends with a `|` for."""


def read_editing_call(program: str, words: Sequence[str]) -> CodeCall | None:
    """Read the words of `perl` or `ruby`, which can go over the lines of files, and edit these in place."""
    at, has_code, endings = 0, False, list[str]()
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        word, ends = words[at], EDITING_ENDS.fullmatch(words[at])
        if not is_certain(word):
            return None
        if ends and EDITING[program].fullmatch(ends["flags"]):
            endings += ["", ends["backup"] or ""] if ends["kept"] else []
            if ends["code"]:
                if _read_code(words[at + 1 : at + 2]) is None:
                    return None
                has_code, at = True, at + 1
        elif not (EDITING[program].fullmatch(word) or LIBRARIES[program].fullmatch(word)):
            return None
        at += 1
    rest = tuple(words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:])
    if not has_code:
        return None if endings else _read_script(next(iter(rest), ""), rest[1:])
    if any(may_become_option(word) or not MAGIC_NAME.fullmatch(word) for word in rest):
        return None
    if any(not is_certain(word) and not word[-1:].isalnum() for word in rest):
        return None  # what `src/*` fits, and `find` finds, may end with any sign
    return CodeCall(code=True, rewrites=list_rewritten(rest, endings), rest=rest)


def list_rewritten(files: Sequence[str], endings: Sequence[str]) -> tuple[str, ...]:
    """List the files that are edited in place, and the copies that are kept of them."""
    return tuple(type(name)(f"{name}{ending}") for ending in dict.fromkeys(endings) for name in files)


def read_php_call(words: Sequence[str]) -> CodeCall | None:
    if words[:1] in (("-r",), ["-r"]):
        return _read_code(words[1:])
    return _read_script(next(iter(words), ""), tuple(words[1:]))


def _read_code(words: Sequence[str]) -> CodeCall | None:
    """Read what follows `-c`, `-e` and the like. Code that is not written out could be any."""
    if not words or not is_certain(words[0]) or is_pattern(words[0]):
        return None
    return CodeCall(code=True, rest=tuple(words[1:]))


def _read_script(first: str, rest: Sequence[str]) -> CodeCall | None:
    if first in INPUT or (is_certain(first) and not first.startswith("-")):
        return CodeCall(script=first, rest=tuple(rest))
    return None


INTERPRETERS: dict[str, ReadCall] = {
    **dict.fromkeys(("python", "python3"), read_python_call),
    "node": read_node_call,
    "perl": lambda words: read_editing_call("perl", words),
    "ruby": lambda words: read_editing_call("ruby", words),
    "php": read_php_call,
}


def runs_in_plain_sight(program: str) -> Fits:
    """It runs a file of the workspace or code in the line, and needs to know nothing else."""
    read = INTERPRETERS[program]

    def fits(words: Sequence[str]) -> bool:
        call = read(words)
        if call is None or call.rewrites:
            return False
        return call.code or (call.script is not None and SCRIPT.fullmatch(call.script) is not None)

    return fits
