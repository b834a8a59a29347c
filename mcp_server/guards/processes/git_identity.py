"""Who signs a commit, and which files does git ignore everywhere? Asks the person's git, which a sandboxed one cannot
read.

Asks git instead of reading its files, because those may include others, some of them for this repository alone. `git
var` and `git config` run nothing: they open neither index nor worktree and use no hook, monitor, pager or alias. Of the
repository they read the configuration and the branch name.
"""

import os
import re
import stat
import subprocess
from pathlib import Path
from shutil import which

SECONDS = 5.0
MOST, MOST_PATTERNS = 1000, 1 << 20
IDENT = re.compile(r"(.+) <([^<>\n]+)> \d+ [+-]\d{4}\n?")
PINNED = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "user.useConfigOnly=true")
"""The last one: a name that git makes up from the account and the machine belongs to nobody."""

Name = tuple[str, str]


def read_signature(search_path: str, home: Path, repository: str) -> tuple[Name, Name] | None:
    """Return author and committer, each a name and an address, for the repository with this `.git` folder."""
    author, committer = (_read_identity(search_path, home, repository, whose) for whose in ("AUTHOR", "COMMITTER"))
    return (author, committer) if author and committer else None


def find_ignore_file(search_path: str, home: Path, repository: str) -> str:
    """Return the file of patterns that the person's git ignores everywhere; empty if there is none. The repository's
    own configuration is not consulted: it names no file of the person's."""
    named = _read_path_setting(search_path, home, repository, "core.excludesFile")
    place = named or str(home / ".config" / "git" / "ignore")
    try:
        return place if place.startswith("/") and 0 < _get_plain_size(Path(place)) <= MOST_PATTERNS else ""
    except OSError:
        return ""


def find_hooks_folder(search_path: str, home: Path, repository: str) -> str:
    """Return where the person's git keeps hooks for every repository; empty if each has its own."""
    return _read_path_setting(search_path, home, repository, "core.hooksPath")


def _read_path_setting(search_path: str, home: Path, repository: str, key: str) -> str:
    words = ("config", "--global", "--includes", "--type=path", "--get", key)
    return _run_git(search_path, home, repository, *words).removesuffix("\n")


def _get_plain_size(path: Path) -> int:
    found = path.stat()
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _read_identity(search_path: str, home: Path, repository: str, whose: str) -> Name | None:
    found = IDENT.fullmatch(_run_git(search_path, home, repository, "var", f"GIT_{whose}_IDENT"))
    return (found[1], found[2]) if found and len(found[0]) <= MOST else None


def _run_git(search_path: str, home: Path, repository: str, *words: str) -> str:
    """Return git's output; empty if it fails."""
    folders = [one for one in search_path.split(os.pathsep) if one.startswith("/")]
    git = which("git", path=os.pathsep.join(folders))
    if git is None:
        return ""
    pinned = [word for setting in PINNED for word in ("-c", setting)]
    try:
        ran = subprocess.run(  # noqa: S603  # every word is ours
            [git, "--no-pager", f"--git-dir={repository}", *pinned, *words],
            env={"HOME": str(home), "PATH": os.defpath, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode("utf-8", "replace") if ran.returncode == 0 else ""
