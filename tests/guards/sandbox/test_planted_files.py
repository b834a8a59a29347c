"""Is that taken away which git would run, and named what other programs obey?"""

from pathlib import Path

import pytest

from mcp_server.guards.sandbox.planted_files import (
    PlantedSince,
    build_planted_refusal,
    find_obeyed_by_git,
    remove_planted_files,
)
from mcp_server.guards.sandbox.protected import OBEYED_BY_GIT, PathWatch
from mcp_server.model.results import Code

pytestmark = pytest.mark.anyio


def test_what_a_program_planted_goes_and_what_was_there_stays(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    kept, *planted = OBEYED_BY_GIT[:3]
    (git / kept).write_text("mine")
    before = find_obeyed_by_git(tmp_path, (".git",))
    assert before == {git / kept}
    for name in planted:
        (git / name).mkdir()
        (git / name / "inside").write_text("x")
    assert remove_planted_files(before, tmp_path, (".git",)) == sorted(Path(".git") / name for name in planted)
    assert [path.name for path in git.iterdir()] == [kept]


def test_a_link_is_taken_away_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    (tmp_path / ".git" / OBEYED_BY_GIT[0]).symlink_to(tmp_path / "mine")
    assert remove_planted_files(frozenset(), tmp_path, (".git",)) == [Path(".git") / OBEYED_BY_GIT[0]]
    assert (tmp_path / "mine" / "file").exists()


def test_the_refusal_names_each() -> None:
    problem = build_planted_refusal([Path(".git/hooks"), Path(".git/config")]).problem
    assert problem.code is Code.NOT_GRANTED
    assert "`.git/hooks`, `.git/config`" in problem.message


async def test_what_is_new_is_named_and_of_a_new_repository_the_repository_alone(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("mine")
    watch = PathWatch(tmp_path, frozenset())
    since = PlantedSince(watch, await watch.scan_protected_paths())
    assert await since.find_planted_paths() == ()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".mcp.json").write_text("planted")
    (tmp_path / "sub" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "sub" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "sub" / ".git" / "config").write_text("")
    found = await since.find_planted_paths()
    assert "deep/.mcp.json" in found
    assert ".mcp.json" not in found
    assert [path for path in found if path.startswith("sub/.git")] == ["sub/.git"]
