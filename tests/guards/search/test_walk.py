"""Which files does a walk come by, and does it leave out what git leaves out?"""

import subprocess
from pathlib import Path

import pytest

from mcp_server.guards.jail import Jail
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.guards.search.walk import IgnoreRules, Walk, parse_ignore_rules

RULES = """# a comment
*.log
!keep.log
build/
/top
docs/*.tmp
**/deep/x
a\\ b
[broken
"""


@pytest.mark.parametrize(
    ("path", "is_folder", "ignored"),
    [
        ("a.log", False, True),
        ("deep/a.log", False, True),
        ("keep.log", False, False),
        ("build", True, True),
        ("build", False, False),
        ("top", False, True),
        ("deep/top", False, False),
        ("docs/a.tmp", False, True),
        ("docs/b/a.tmp", False, False),
        ("p/q/deep/x", False, True),
        ("trailing ", False, True),
        ("trailing", False, False),
        ("a.py", False, False),
    ],
)
def test_what_a_gitignore_leaves_out(path: str, is_folder: bool, ignored: bool) -> None:
    assert IgnoreRules(".", parse_ignore_rules(RULES + r"trailing\ ")).is_ignored(path, is_folder) is ignored


def test_the_nearer_file_decides() -> None:
    above = IgnoreRules(".", parse_ignore_rules("*.log"))
    here = IgnoreRules("sub", parse_ignore_rules("!a.log"), above)
    assert not here.is_ignored("sub/a.log", False)
    assert here.is_ignored("sub/b.log", False)


def files_of(root: Path) -> list[str]:
    jail = Jail(root, (root / ".menugate",), ())
    walk = Walk(jail, ".", SearchDeadline(60))
    return sorted(entry.place.path for entry in walk.walk_files())


def test_it_finds_what_git_would_add(tmp_path: Path) -> None:
    for name in ("a.py", "a.log", "keep.log", "build/x", "sub/b.log", "sub/deep/x", "docs/a.tmp", "docs/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text(RULES)
    (tmp_path / "sub" / ".gitignore").write_text("!b.log\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    words = ["git", "ls-files", "--others", "--exclude-standard"]
    told = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert files_of(tmp_path) == sorted(told)


def test_links_and_our_own_state_are_passed_by(tmp_path: Path) -> None:
    (tmp_path / "work" / ".menugate").mkdir(parents=True)
    (tmp_path / "work" / ".menugate" / "state.db").write_text("x")
    (tmp_path / "work" / "a.py").write_text("x")
    (tmp_path / "outside").write_text("x")
    (tmp_path / "work" / "link").symlink_to("../outside")
    assert files_of(tmp_path / "work") == ["a.py"]
