"""Which repositories are opened, and does git keep its own folder as it is?"""

import os
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Done
from tests.tools.git.ground import Opened, git, paths
from tests.tools.git.poison import template


def test_without_a_sandbox_only_a_harmless_repository_is_opened(tmp_path: Path, opened: Opened) -> None:
    root = tmp_path / "work"
    template(root)
    bench = opened(root)
    bench.only("none")
    assert bench.problem("git_status", Profile.RESTRICTED).code is Code.NOT_GRANTED
    assert isinstance(bench.done("git_status", Profile.NORMAL), Done)
    assert bench.problem("git_add", Profile.NORMAL, files=["a.txt"]).code is Code.NOT_GRANTED
    assert paths(bench.done("git_add", Profile.TRUSTED, files=["a.txt"])) == ["a.txt"]
    for words in ('[filter "x"]\n\tclean = cat\n', "[core][FILTER.x]clean=cat\n", "[include]\n\tpath = more\n"):
        with (root / ".git" / "config").open("a") as file:
            file.write(words)
        calls: dict[str, dict[str, Any]] = {"git_status": {}, "git_add": {"files": ["a.txt"]}, "git_log": {}}
        for name, arguments in calls.items():
            assert bench.problem(name, Profile.TRUSTED, **arguments).code is Code.UNSAFE_REPOSITORY, name
        lines = (root / ".git" / "config").read_text().removesuffix(words)
        (root / ".git" / "config").write_text(lines)
    assert isinstance(bench.done("git_status"), Done)


@pytest.mark.parametrize("profile", [Profile.NORMAL, Profile.TRUSTED])
def test_git_keeps_its_folder_and_its_settings_stay(tmp_path: Path, opened: Opened, profile: Profile) -> None:
    """A filter that runs while git may write cannot give itself a longer life."""
    root = tmp_path / "work"
    template(root)
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--", str(root), "sub")
    evil = root / "evil"
    evil.write_text(
        "#!/bin/sh\nexec 2>/dev/null\nfor one in .git/config .git/hooks/post-commit .git/modules/sub/config "
        ".git/modules/sub/hooks/x .git/commondir .git/config.worktree .envrc; do echo evil >> $one; done\n"
        "mv .git .moved\nexec cat\n"
    )
    evil.chmod(0o755)
    git(root, "config", "filter.evil.clean", str(evil))
    (root / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    before = {path: path.read_bytes() for path in sorted((root / ".git").rglob("*config*")) if path.is_file()}
    bench = opened(root)
    if not bench.only("bubblewrap"):
        pytest.skip("there is no bubblewrap here")
    told = bench.problem("git_add", profile, files=["a.txt", "evil"])
    assert "commondir" in told.message
    after = {path: path.read_bytes() for path in sorted((root / ".git").rglob("*config*")) if path.is_file()}
    assert after == before
    assert not os.path.lexists(root / ".git" / "hooks" / "post-commit")
    assert not (root / ".git" / "modules" / "sub" / "hooks" / "x").exists()
    assert not (root / ".git" / "commondir").exists()
