"""Who signs a commit, and which files does git ignore everywhere? The user's git configuration, hidden in a sandbox.

We ask git instead of reading its files, because those may include others, some of them for this repository alone. `git
var` and `git config` run nothing: they open neither index nor worktree and use no hook, monitor, pager or alias. Of the
repository they read only the configuration and the branch name.
"""

import os
import re
import stat
import subprocess
from pathlib import Path

from mcp_server.guards.sandbox.access import HostPaths, find_program

GIT_SECONDS = 5.0
MAX_IDENTITY_CHARS, MAX_IGNORE_BYTES = 1000, 1 << 20
IDENT = re.compile(r"(.+) <([^<>\n]+)> \d+ [+-]\d{4}\n?")
PINNED_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "user.useConfigOnly=true")
"""The last one keeps git from making up a name from the account and the machine."""

Name = tuple[str, str]


def read_signature(host: HostPaths, repository: str) -> tuple[Name, Name] | None:
    """Return author and committer for the repository with this `.git` folder, each as name and address."""
    author, committer = (_read_identity(host, repository, role) for role in ("AUTHOR", "COMMITTER"))
    return (author, committer) if author and committer else None


def find_ignore_file(host: HostPaths, repository: str) -> str:
    """Return the user's file of patterns to ignore in every repository; empty if there is none. The repository's own
    configuration does not count: it must not name files outside."""
    configured = _read_path_setting(host, repository, "core.excludesFile")
    path = configured or str(host.home / ".config" / "git" / "ignore")
    try:
        return path if path.startswith("/") and 0 < _get_plain_size(Path(path)) <= MAX_IGNORE_BYTES else ""
    except OSError:
        return ""


def find_hooks_folder(host: HostPaths, repository: str) -> str:
    """Return the user's hooks folder for every repository; empty if each repository has its own."""
    return _read_path_setting(host, repository, "core.hooksPath")


def _read_path_setting(host: HostPaths, repository: str, key: str) -> str:
    arguments = ("config", "--global", "--includes", "--type=path", "--get", key)
    return _run_git(host, repository, *arguments).removesuffix("\n")


def _get_plain_size(path: Path) -> int:
    stats = path.stat()
    return stats.st_size if stat.S_ISREG(stats.st_mode) else 0


def _read_identity(host: HostPaths, repository: str, role: str) -> Name | None:
    match = IDENT.fullmatch(_run_git(host, repository, "var", f"GIT_{role}_IDENT"))
    return (match[1], match[2]) if match and len(match[0]) <= MAX_IDENTITY_CHARS else None


def _run_git(host: HostPaths, repository: str, *arguments: str) -> str:
    """Return git's output; empty if it fails."""
    git = find_program("git", host.search_path, host.workspace)
    if git is None:
        return ""
    pinned = [argument for setting in PINNED_SETTINGS for argument in ("-c", setting)]
    try:
        result = subprocess.run(  # noqa: S603  # every word is ours
            [git, "--no-pager", f"--git-dir={repository}", *pinned, *arguments],
            env={"HOME": str(host.home), "PATH": os.defpath, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.decode("utf-8", "replace") if result.returncode == 0 else ""
