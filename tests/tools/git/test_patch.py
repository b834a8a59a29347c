"""Is a long patch shown in pages that make the whole, in little memory?"""

import resource
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.results import Code
from tests.sizes import scale
from tests.tools.git.ground import TOOLS, GitWorkbench, Opened, git
from tests.tools.git.poison import template
from tools.git import escape, patch


def test_a_long_patch_comes_in_pages_that_make_the_whole(bench: GitWorkbench) -> None:
    (bench.root / "long.txt").write_text("".join(f"{number} {'x' * 60}\n" for number in range(4000)))
    git(bench.root, "add", "long.txt")
    wanted = [escape.to_content_line(line) for line in git(bench.root, "diff", "--cached").split(b"\n")[:-1]]
    got: list[str] = []
    onward: dict[str, Any] | None = {}
    while onward is not None:
        told = bench.done("git_diff_staged", **onward)
        assert told.data is not None
        assert len(told.text) < TOOLS["git_diff_staged"].max_result_chars
        body, more, _ = told.text.rpartition("\n[Lines ")
        lines = (body if more else told.text).split("\n")
        got += lines if onward else lines[lines.index("") + 1 :]
        onward = told.data["next"]
        assert (onward is not None) == told.data["truncated"]
    assert got == wanted
    assert bench.problem("git_diff_staged", offset=len(wanted) + 1).code is Code.INVALID_ARGUMENTS


@pytest.mark.heavy
def test_a_diff_of_a_hundred_megabytes_stays_small(tmp_path: Path, opened: Opened) -> None:
    root = tmp_path / "work"
    template(root)
    line = b"x" * 99 + b"\n"
    (root / "a.txt").write_bytes(line * 10)
    git(root, "commit", "-q", "-a", "-m", "small")
    (root / "a.txt").write_bytes(line * scale(1_050_000))
    bench = opened(root)
    bench.done("git_status")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = bench.done("git_diff_unstaged")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert told.data is not None
    assert told.data["truncated"]
    assert told.data["files"][0]["added"] == scale(1_050_000) - 10
    assert len(told.text) < patch.PAGE + 2_000
    assert grown * 1024 < 4 * (8 << 20)
