"""Which two things does a comparison compare?"""

import pytest

from mcp_server.model.results import Code
from tests.tools.git.ground import GitWorkbench, paths


@pytest.mark.parametrize("tool", ["git_diff", "git_show"])
def test_a_range_is_two_commits(bench: GitWorkbench, tool: str) -> None:
    if tool == "git_show":
        assert bench.problem(tool, revision="main..other").code is Code.NOT_FOUND
        return
    two = bench.done("git_diff", target="main..other")
    three = bench.done("git_diff", target="main...other")
    assert paths(two) == ["a.txt", "d.txt"]
    assert paths(three) == ["d.txt"]
    assert bench.problem("git_diff", target="main..nowhere").code is Code.NOT_FOUND
