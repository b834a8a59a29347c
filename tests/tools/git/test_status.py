"""Does the status say where the repository stands, in pages where there is much of it?"""

from typing import Any

from mcp_server.model.results import Code
from tests.tools.git.ground import GitWorkbench, git


def test_a_merge_under_way_is_not_lost(bench: GitWorkbench) -> None:
    git(bench.root, "reset", "-q", "--hard")
    git(bench.root, "merge", "-q", "clashing", ok=False)
    told = bench.done("git_status")
    assert "A merge is in progress" in told.text
    assert "both modified" in told.text
    assert bench.problem("git_commit", message="x").code is Code.WRONG_STATE
    assert bench.problem("git_checkout", branch_name="other", keep_changes=True).code is Code.WRONG_STATE
    (bench.root / "a.txt").write_text("resolved\n")
    bench.done("git_add", files=["a.txt"])
    bench.done("git_reset")
    assert (bench.root / ".git" / "MERGE_HEAD").exists()
    bench.done("git_add", files=["a.txt"])
    bench.done("git_commit", message="merged")
    merge = bench.done("git_show", revision="HEAD")
    assert "merge of" in merge.text
    assert len(git(bench.root, "rev-list", "--parents", "-1", "HEAD").split()) == 3


def test_a_status_of_many_files_comes_in_pages(bench: GitWorkbench) -> None:
    for number in range(700):
        (bench.root / f"n{number}").write_text("")
    seen: list[str] = []
    onward: dict[str, Any] | None = {}
    while onward is not None:
        told = bench.data("git_status", **onward)
        seen += [one["path"] for one in told["entries"]]
        onward = told["next"]
    assert len(seen) == len(set(seen)) == 702
    assert bench.problem("git_status", offset=702).code is Code.INVALID_ARGUMENTS
