"""Is that staged which was named, and nothing past a filter or a secret?"""

from typing import Any

from mcp_server.model.results import Code
from tests.tools.git.ground import GitWorkbench, git, paths


def test_what_holds_secrets_is_neither_shown_nor_staged_unasked(bench: GitWorkbench) -> None:
    (bench.root / ".env").write_text("KEY=old-value\n")
    git(bench.root, "add", ".env")
    git(bench.root, "commit", "-q", "-m", "with a secret")
    (bench.root / ".env").write_text("KEY=new-value\n")
    calls: dict[str, dict[str, Any]] = {
        "git_diff_unstaged": {},
        "git_diff": {"target": "HEAD"},
        "git_show": {"revision": "HEAD"},
    }
    for tool, arguments in calls.items():
        told = bench.done(tool, **arguments)
        assert "value" not in told.text, tool
        assert "`.env`" in told.text
        assert told.data is not None
        assert told.data["not_shown"] == [".env"]
        named: dict[str, Any] = arguments | {"paths": [".env"]}
        assert bench.problem(tool, **named).code is Code.APPROVAL_REQUIRED
        assert "value" in bench.done(tool, yes=True, **named).text
    told = bench.problem("git_add", files=["."])
    assert told.code is Code.PATH_REFUSED
    assert "`.env`" in told.message
    assert b".env" not in git(bench.root, "diff", "--cached", "--name-only")
    assert bench.problem("git_add", files=[".env"]).code is Code.APPROVAL_REQUIRED
    assert paths(bench.done("git_add", yes=True, files=[".env"])) == [".env"]
    assert "value" not in bench.done("git_diff_staged").text


def test_a_file_is_not_staged_past_its_filter(bench: GitWorkbench) -> None:
    (bench.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (bench.root / "large.bin").write_text("large\n")
    told = bench.problem("git_add", files=["large.bin"])
    assert told.code is Code.WRONG_STATE
    assert "`lfs`" in told.message
    assert "git lfs install --local" in told.way_out
    git(bench.root, "config", "filter.lfs.clean", "sed s/large/pointer/")
    bench.done("git_add", files=["large.bin"])
    assert git(bench.root, "show", ":large.bin") == b"pointer\n"
