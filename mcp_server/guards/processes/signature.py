"""Who signs a commit? What the person's own git says, which no sandbox shows to a git that works for a model.

Asked of git and not read from its files, because those may include others, and others again for this repository alone.
`git var` starts nothing: neither index nor worktree is opened, no hook, monitor, pager or alias has a part in it. Of
the repository it reads the configuration and the name of the branch.
"""

import os
import re
import subprocess
from pathlib import Path
from shutil import which

SECONDS = 5.0
MOST = 1000
IDENT = re.compile(r"(.+) <([^<>\n]+)> \d+ [+-]\d{4}\n?")
PINNED = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "user.useConfigOnly=true")
"""The last: a name that git makes up of the account's and the machine's is nobody's."""

Name = tuple[str, str]


def signature(search_path: str, home: Path, repository: str) -> tuple[Name, Name] | None:
    """Author and committer of the repository whose own folder this is, each a name and an address."""
    folders = [one for one in search_path.split(os.pathsep) if one.startswith("/")]
    git = which("git", path=os.pathsep.join(folders))
    if git is None:
        return None
    author, committer = (_ident(git, home, repository, whose) for whose in ("AUTHOR", "COMMITTER"))
    return (author, committer) if author and committer else None


def _ident(git: str, home: Path, repository: str, whose: str) -> Name | None:
    pinned = [word for setting in PINNED for word in ("-c", setting)]
    try:
        ran = subprocess.run(  # noqa: S603  # every word is ours
            [git, "--no-pager", f"--git-dir={repository}", *pinned, "var", f"GIT_{whose}_IDENT"],
            env={"HOME": str(home), "PATH": os.defpath, "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = IDENT.fullmatch(ran.stdout.decode("utf-8", "replace")) if ran.returncode == 0 else None
    return (found[1], found[2]) if found and len(found[0]) <= MOST else None
