"""What do names mean in this shell? As it says itself, compared with what it said when it was new."""

import hashlib
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from mcp_server.model.processes import PROJECT_PROGRAMS
from mcp_server.model.text import quote_text
from tools.shell.environment_names import is_ordinary_name, is_plain_value, names_nothing_to_run
from tools.shell.variables import ENVIRONMENT, is_own_variable

REPORTS = (
    "declare -F",
    "declare -f",
    "alias -p",
    "declare -p",
    "shopt -p",
    "set +o",
    "trap -p",
    "hash -l",
    "enable -a",
)
"""Builtins that print what they know. None starts a process."""
FUNCTION = re.compile(r"(?:function )?(\S+) \(\) ?")
NAMED = re.compile(r"declare -\S+ (\S+)")
ALIAS = re.compile(r"alias (?:-- )?([^=]+)=")
VARIABLE = re.compile(r"declare -(\S+) (\w+)")
HASHED = re.compile(r"builtin hash -p (\S+) (\S+)")
TRACED = re.compile(r"\++ .*builtin .*")
"""What `set -x` prints about the report itself."""
OWN_WORK = re.compile(
    r"set [-+]o (?:errexit|nounset|xtrace|pipefail|history|emacs|vi|monitor)|shopt -[su] checkwinsize"
)
"""Options that change no meaning of a name."""
KEPT = """
BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_EXECUTION_STRING BASH_LINENO
BASH_MONOSECONDS BASH_REMATCH BASH_SOURCE BASH_SUBSHELL COLUMNS DIRSTACK EPOCHREALTIME EPOCHSECONDS FUNCNAME GROUPS
HISTCMD HOSTNAME LINENO LINES OLDPWD OPTARG OPTERR OPTIND PIPESTATUS PPID PWD RANDOM SECONDS SHELLOPTS SHLVL SRANDOM
VIRTUAL_ENV VIRTUAL_ENV_PROMPT _ _OLD_VIRTUAL_PATH _OLD_VIRTUAL_PS1
"""
VOLATILE = frozenset(KEPT.split())
"""bash sets them itself, or they mean something only to the project's own environment."""
ASKED = "alias|builtin|declare|enable|eval|hash|printf|set|shopt|trap|true"
MISLEADING = re.compile(rf"\b(?:exec|enable|POSIXLY_CORRECT)\b|\b(?:{ASKED})\s*\(|\b(?:function|alias)\s+(?:{ASKED})\b")
"""A line that replaces the shell, or what it is asked with, can make it say what is not so."""
PLAIN_PROMPT = re.compile(r"[^$`\\]*")
CANNOT_TELL = "earlier lines may keep this shell from saying what names mean in it"


class ShellState(Struct, frozen=True):
    functions: Mapping[str, str]
    aliases: Mapping[str, str]
    variables: Mapping[str, str]
    """Each as bash would declare it again."""
    settings: frozenset[str]
    """Options, traps and builtins, each as the line that would set it again."""
    hashed: Mapping[str, str]
    """Where the shell has found, or was told to find, a program."""

    @property
    def search_path(self) -> str:
        return read_value(self.variables.get("PATH", ""))

    @property
    def folder(self) -> str:
        return read_value(self.variables.get("PWD", ""))


def parse_reports(sections: Sequence[str]) -> ShellState:
    """Parse what the REPORTS have printed, one after the other."""
    texts = ["\n".join(line for line in one.split("\n") if not TRACED.fullmatch(line)) for one in sections]
    names, functions, aliases, variables, shopts, options, traps, hashed, builtins = texts
    known = set(NAMED.findall(names))
    settings = (*shopts.split("\n"), *options.split("\n"), *traps.split("\n"), *builtins.split("\n"))
    return ShellState(
        {name: text for name, text in _split_at(FUNCTION, functions, 1) if name in known},
        dict(_split_at(ALIAS, aliases, 1)),
        dict(_split_at(VARIABLE, variables, 2)),
        frozenset(one.strip() for one in settings if one.strip()),
        {name: path for path, name in HASHED.findall(hashed)},
    )


def _split_at(head: re.Pattern[str], text: str, group: int) -> Iterator[tuple[str, str]]:
    """Yield the name in each line that begins something, with the text up to the next such line."""
    name, lines = "", list[str]()
    for line in text.split("\n"):
        match = head.match(line) if head is not FUNCTION else head.fullmatch(line)
        if match:
            if name:
                yield name, "\n".join(lines).rstrip()
            name, lines = match[group], []
        lines.append(line)
    if name:
        yield name, "\n".join(lines).rstrip()


def read_value(declared: str) -> str:
    return declared.partition("=")[2].strip().removeprefix('"').removesuffix('"')


# What is different from the shell as it was when it was new?


def find_changed_variables(fresh: ShellState, now: ShellState, root: str) -> dict[str, str]:
    """Return those that may change what runs. Those of a line itself may not, as long as nothing exports them."""
    changed: dict[str, str] = {}
    for name in sorted(fresh.variables.keys() | now.variables.keys()):
        before, after = fresh.variables.get(name, ""), now.variables.get(name, "")
        if before == after or name in VOLATILE or name in ENVIRONMENT or _is_harmless(name, after):
            continue
        if name == "PATH" and _is_project_path(read_value(before), read_value(after), root):
            continue
        changed[name] = after or f"unset {name}"
    return changed


def _is_harmless(name: str, declared: str) -> bool:
    match = VARIABLE.match(declared)
    flags = set(match[1]) if match else set[str]()
    if name in ("PS1", "PS2"):
        return match is not None and PLAIN_PROMPT.fullmatch(read_value(declared)) is not None
    # bash computes what is put into an integer, and a reference is another variable.
    if flags & {"i", "n"}:
        return False
    if is_own_variable(name):
        return "x" not in flags
    value = read_value(declared)
    return is_ordinary_name(name) and is_plain_value(value) and names_nothing_to_run(name, value)


def _is_project_path(before: str, after: str, root: str) -> bool:
    """True if only the project's own environment was put first, as lines that build find it anyway."""
    own = {f"{root}/{folder}" for folder in PROJECT_PROGRAMS}
    return _drop_own(before, own) == _drop_own(after, own)


def _drop_own(search_path: str, own: Collection[str]) -> list[str]:
    folders = search_path.split(os.pathsep)
    while folders and folders[0] in own:
        folders.pop(0)
    return folders


def find_other_meaning(words: Collection[str], fresh: ShellState | None, now: ShellState | None, root: str) -> str:
    """Say why a line with these words may do something else here than in a new shell; empty if it may not."""
    if fresh is None or now is None:
        return CANNOT_TELL
    for kind, found in (("a function", now.functions), ("an alias", now.aliases)):
        if named := next((one for one in words if one in found), None):
            return f"in this shell, {quote_text(named)} is {kind} that was defined earlier"
    if exported := next((one for one, text in now.functions.items() if f"\ndeclare -fx {one}" in text), None):
        return f"this shell hands the function {quote_text(exported)} on to programs"
    if changed := find_changed_variables(fresh, now, root):
        return f"in this shell, {quote_text(next(iter(changed)))} was changed earlier"
    if settings := find_changed_settings(fresh, now):
        return f"an earlier line has changed this shell: {quote_text(settings[0])}"
    if odd := find_odd_programs(now):
        return f"in this shell, {quote_text(next(iter(odd)))} is {quote_text(next(iter(odd.values())))}"
    return ""


def find_changed_settings(fresh: ShellState, now: ShellState) -> list[str]:
    return sorted(one for one in now.settings - fresh.settings if not OWN_WORK.fullmatch(one))


def find_odd_programs(now: ShellState) -> dict[str, str]:
    """Find programs that were not found on the search path."""
    folders = set(now.search_path.split(os.pathsep))
    return {name: path for name, path in sorted(now.hashed.items()) if posixpath.dirname(path) not in folders}


def describe_shell(
    words: Collection[str], uses: Collection[str], fresh: ShellState | None, now: ShellState | None, root: str
) -> dict[str, str]:
    """Return what matters here for a line with these words, which uses these variables."""
    if fresh is None or now is None:
        return {"what names mean in it": f"unknown: {CANNOT_TELL}"}
    named = {**now.functions, **now.aliases}
    digest = hashlib.sha256("\n".join(named.values()).encode()).hexdigest()
    # Programs load code from where some of these lead, so they matter to whoever approves what a program does.
    told = {name for name in ENVIRONMENT if now.variables.get(name, "") != fresh.variables.get(name, "")}
    used = {
        name: now.variables[name] for name in sorted({*uses, *told}) if name in now.variables and name not in VOLATILE
    }
    odd = find_odd_programs(now)
    facts = {
        "what the line names is defined in it": "\n".join(text for one, text in named.items() if one in words),
        "its functions and aliases": f"{', '.join(named)} (SHA-256 {digest})" if named else "",
        "its variables": "\n".join((find_changed_variables(fresh, now, root) | used).values()),
        "its settings": "\n".join(find_changed_settings(fresh, now)),
        "where it finds programs": "\n".join(f"{name}: {path}" for name, path in odd.items()),
    }
    return {name: text for name, text in facts.items() if text}
