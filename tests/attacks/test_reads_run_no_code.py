"""Does a line that only reads start what the workspace names? A folder can look like a repository, with settings."""

import subprocess
from pathlib import Path

from tests.clients.pipe import pipe


def test_a_folder_that_looks_like_a_repository_starts_nothing(workspace: Path, home: Path) -> None:
    bare = workspace / "r"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    with (bare / "config").open("a") as config:
        config.write(f'[core]\n\tworktree = {workspace}\n\tbare = false\n\tfsmonitor = "echo ran >&2; echo"\n')
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        for line in ("git -C r diff", "git -C r status", "cd r && git diff"):
            said = one.call("bash", command=line)["content"][0]["text"]
            assert "[exit code 1" in said, (line, said)
            assert "ran\n" not in said, (line, said)
