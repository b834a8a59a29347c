"""Does this command need another machine? Where commands have no network, approval of one that does is useless.

This is a service, not a protection: a command that is missing here is asked about and then fails.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tools.shell.git_commands import GitCall, find_git_calls
from tools.shell.program_arguments import is_certain

Needs: TypeAlias = Callable[[Sequence[str]], bool]
HOST = r"(?!(?:localhost|[^/]*\.(?:localhost|local|internal|test))(?:[:/]|$)|127\.|0\.0\.0\.0)[\w-]+(?:\.[\w-]+)+"
"""One that no file of this machine is likely to name."""
URL = re.compile(rf"(?:(?:https?|ftp|ssh|git)://)(?:[\w.-]+@)?{HOST}(?::\d+)?(?:[/?#].*)?")
BARE_URL = re.compile(rf"(?:https?://|ftp://)?{HOST}(?::\d+)?(?:[/?#].*)?")
REMOTE_PLACE = re.compile(rf"(?:[\w.-]+@)?{HOST}:(?!//)\S*")
REMOTE_FILE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)\S*|rsync://.*")
OWN_SOCKET = re.compile("--(?:abstract-)?unix-socket(?:=.*)?|--version|--help|-[Vh]")
LOCAL_PUSH = re.compile(r"[./~].*|file:.*|-h|--help|-n|--dry-run")


def _find_operand(pattern: re.Pattern[str], spared: re.Pattern[str] = OWN_SOCKET) -> Needs:
    return lambda words: (
        any(is_certain(word) and pattern.fullmatch(word) for word in words)
        and not any(not is_certain(word) or spared.fullmatch(word) for word in words if word.startswith("-"))
    )


def _find_command(*names: str) -> Needs:
    return lambda words: bool(words) and words[0] in names and not {"-h", "--help"}.intersection(words)


PROGRAMS: Mapping[str, Needs] = {
    **dict.fromkeys(("curl", "wget"), _find_operand(BARE_URL)),
    **dict.fromkeys(("scp", "rsync"), _find_operand(REMOTE_FILE)),
    **dict.fromkeys(("ssh", "sftp"), lambda words: bool(words) and re.fullmatch(r"[\w.@-]+", words[0]) is not None
        and not words[0].startswith("-")),
    **dict.fromkeys(("ping", "dig", "host", "nslookup", "traceroute"), _find_operand(re.compile(HOST))),
    "gh": _find_command("pr", "issue", "repo", "run", "release", "api", "workflow", "search", "gist"),
    "kubectl": _find_command("get", "apply", "logs", "exec", "describe", "delete", "rollout", "scale", "port-forward"),
    "npm": _find_command("publish", "view", "info", "outdated", "search", "login", "whoami"),
    "docker": _find_command("pull", "push", "login"),
    "twine": _find_command("upload"),
}  # fmt: skip


def find_remote_command(words: Sequence[str]) -> str:
    """Return the name of a command that needs another machine; empty if none surely does."""
    for call in find_git_calls(words, lambda _: ()):
        if _needs_remote(call):
            return f"git {call.name}"
    needs = PROGRAMS.get(words[0])
    return words[0] if needs and needs(words[1:]) else ""


INSTALLING: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset(("install", "i", "ci", "add", "update", "dlx", "exec"))),
    **dict.fromkeys(("pip", "pip3", "pipx"), frozenset(("install", "download", "wheel", "run"))),
    "uv": frozenset(("add", "sync", "lock", "tool")),
    "poetry": frozenset(("add", "install", "update", "lock")),
    "pdm": frozenset(("add", "install", "sync", "update", "lock")),
    "cargo": frozenset(("add", "install", "fetch", "update")),
    "go": frozenset(("get", "install")),
    "gem": frozenset(("install", "update")),
    **dict.fromkeys(("bundle", "composer"), frozenset(("install", "update", "require", "add"))),
    "dotnet": frozenset(("restore", "add")),
    **dict.fromkeys(
        ("apt", "apt-get", "dnf", "yum", "brew", "apk"), frozenset(("install", "update", "upgrade", "add"))
    ),
    **dict.fromkeys(("npx", "uvx", "bunx"), frozenset(("",))),
}
"""Package managers, with the subcommands that download what is not there yet."""
MANAGERS = re.compile(rf"\b(?:{'|'.join(INSTALLING)})\b")
"""A line without any of these downloads no package that is known of here."""
PIP = re.compile(r"(?:python(?:3(?:\.\d+)?)? -m|uv) (?=pip )")
LOCAL = re.compile(r"--(?:offline|no-index|dry-run|help|version)|-h")


def find_download(words: Sequence[str], is_there: Callable[[str], bool]) -> str:
    """Return the name of a command that may download packages; empty if it is not known to. `is_there`: whether there
    is something at a path of the project."""
    said = PIP.sub("", " ".join(words[:4])).split()
    subcommands = INSTALLING.get(said[0]) if said else None
    if subcommands is None or any(LOCAL.fullmatch(word) for word in words):
        return ""
    given = [word for word in said[1:] if not word.startswith("-")][:1]
    if "" in subcommands:
        return said[0] if given and not is_there(f"node_modules/.bin/{given[0]}") else ""
    if not given:  # `yarn` alone installs
        return said[0] if said == ["yarn"] else ""
    return f"{said[0]} {given[0]}" if given[0] in subcommands else ""


def _needs_remote(call: GitCall) -> bool:
    if call.name == "push":
        return not any(not is_certain(word) or LOCAL_PUSH.fullmatch(word) for word in call.rest)
    found = any(is_certain(word) and (URL.fullmatch(word) or REMOTE_PLACE.fullmatch(word)) for word in call.rest)
    return call.name in ("clone", "ls-remote") and found
