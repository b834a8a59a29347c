"""Does the judge of lines get to know where the workspace is?"""

from pathlib import Path

from tests.tools.shell.house import bash, served


def test_a_line_that_goes_to_the_workspace_by_its_whole_path_runs_unasked(workspace: Path, home: Path) -> None:
    (workspace / "src").mkdir(exist_ok=True)
    with served(workspace, home, "--profile", "normal") as client:
        assert "src" in bash(client, f"cd {workspace} && touch here && ls")
        assert (workspace / "here").exists()
        assert "exit code" not in bash(client, f"cd /usr; cd {workspace}/src && touch there")
        for line in ("cd /usr/share && make", f"cd /usr; cd {workspace}/none; make", 'cd "$X" && make'):
            assert "APPROVAL_REQUIRED" in bash(client, line)
