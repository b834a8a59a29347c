"""Are hooks left out until somebody asks for them, and is that said?"""

from mcp_server.model.results import Code
from tests.tools.git.ground import TOOLS, GitWorkbench


def test_hooks_are_left_out_and_that_is_said(bench: GitWorkbench) -> None:
    hook = bench.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
    hook.chmod(0o755)
    told = bench.done("git_commit", message="x")
    assert "[The repository's hooks (pre-commit) were not run; `run_hooks` runs them.]" in told.text
    assert not (bench.root / "ran").exists()
    (bench.root / "a.txt").write_text("more\n")
    bench.done("git_add", files=["a.txt"])
    assert bench.problem("git_commit", message="y", run_hooks=True).code is Code.TOOL_FAILED
    assert (bench.root / "ran").exists()
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert "hooks were allowed to run" in bench.done("git_commit", message="y", run_hooks=True).text
    assert TOOLS["git_commit"].get_demand({"message": "x", "run_hooks": True}).effect == "exec"
