"""Who signs a commit? What the person's own git says, which no sandbox shows to a git that works for a model.

Asked of git and not read from the file, because that file may include others. Only the person's own settings are
looked at: no folder of a workspace is near.
"""

import os
import subprocess
from pathlib import Path
from shutil import which

SECONDS = 5.0


def signature(search_path: str, home: Path) -> tuple[str, str] | None:
    folders = [one for one in search_path.split(os.pathsep) if one.startswith("/")]
    git = which("git", path=os.pathsep.join(folders))
    if git is None:
        return None
    name, address = (_setting(git, home, key) for key in ("user.name", "user.email"))
    return (name, address) if name and address else None


def _setting(git: str, home: Path, key: str) -> str:
    try:
        ran = subprocess.run(  # noqa: S603  # every word is ours
            [git, "config", "--global", "--includes", "--get", key],
            env={"HOME": str(home), "PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode("utf-8", "replace").strip()
