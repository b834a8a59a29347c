"""Does a pattern mean what its reader expects, and is no pattern slow?"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.guards.search import globs, walk
from mcp_server.guards.search.file_types import GLOBS_BY_TYPE, find_type_globs, may_hold_secrets
from mcp_server.guards.search.globs import BadGlob, Globs, compile_glob, expand_braces
from mcp_server.guards.search.walk import IgnoreRules
from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Refusal
from tests.sizes import scale
from tests.yaml_text import load_yaml

HOUSE = Path(__file__).parents[3]
TABLE: list[dict[str, Any]] = load_yaml((HOUSE / "tests" / "tables" / "globs.yaml").read_text())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["pattern"])
def test_table(row: dict[str, Any]) -> None:
    found = Globs.from_patterns(row["pattern"].split(";"))
    assert [path for path in row["matches"] if not found.match(path)] == []
    assert [path for path in row["not"] if found.match(path)] == []


def test_braces_beyond_reason_are_refused() -> None:
    with pytest.raises(BadGlob, match="64"):
        expand_braces("{a,b}" * 7)
    assert len(expand_braces("{a,b}" * 6)) == 64


def test_a_pattern_beyond_reason_is_refused() -> None:
    with pytest.raises(BadGlob):
        compile_glob("*a" * 600)


# One star that tries again where another stands would take longer than anybody waits; processor time is rationed.
HOSTILE = [
    "*a" * 40,
    "**/*a" * 30,
    "*" * 300,
    "[a-z]*" * 40,
    "**/" * 100 + "b",
    "a**" * 50 + "b",
    "**/a/**/a/" * 30 + "b",
]
RATION = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
sys.path.insert(0, {house!r})
from mcp_server.guards.search.globs import compile_glob
for pattern in {patterns!r}:
    compile_glob(pattern).match("a" * 250 + "!")
    compile_glob(pattern).match("a/" * 2000 + "!")
print("done")
"""


def test_no_pattern_is_slow() -> None:
    code = RATION.format(house=str(HOUSE), patterns=HOSTILE)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr


NAMES = st.text(st.sampled_from("ab.*?/![]\\# "), min_size=0, max_size=8)
LINES = st.lists(NAMES, max_size=5)
SEGMENTS = ["a", "b", "ab", "*", "a*", "*b", "?", "[ab]", "[!a]", "**", "a.b", "\\!a", "\\#"]
PATHS = st.lists(st.text(st.sampled_from("ab.# !"), min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


def _line(sign: str, root: str, parts: list[str], end: str) -> str:
    return sign + root + "/".join(parts) + end


RULES = st.lists(
    st.builds(
        _line,
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["", "/"]),
        st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3),
        st.sampled_from(["", "/"]),
    ),
    max_size=5,
)
PLACES = st.lists(st.sampled_from(["a", "b", "ab", "ba", "a.b", "aab", "!a", "#"]), min_size=1, max_size=4)


def left_out(lines: list[str], parts: list[str]) -> bool:
    """Is the file left out, asked from the top down as a walk does?"""
    rules = IgnoreRules(".", walk.parse_ignore_rules("\n".join(lines)))
    steps = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
    return any(rules.is_ignored(step, is_folder=at < len(parts) - 1) for at, step in enumerate(steps))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not here to be asked")
    path = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", path], check=True, env=PLAIN)
    return path


PLAIN = {"PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None)
@given(lines=RULES, places=st.lists(PLACES, min_size=8, max_size=12))
def test_gitignore_is_read_as_git_reads_it(repository: Path, lines: list[str], places: list[list[str]]) -> None:
    (repository / ".gitignore").write_text("\n".join(lines) + "\n")
    paths = ["/".join(parts) for parts in places]
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", "--stdin", "-z"]
    done = subprocess.run(command, input="\0".join(paths) + "\0", capture_output=True, text=True, env=PLAIN)
    assert {"/".join(parts) for parts in places if left_out(lines, parts)} == set(done.stdout.split("\0")) - {""}


@given(LINES, PATHS)
def test_no_gitignore_breaks_a_walk(lines: list[str], path: str) -> None:
    assert IgnoreRules(".", walk.parse_ignore_rules("\n".join(lines))).is_ignored(path, False) in (True, False)


@pytest.mark.parametrize(
    ("lines", "path", "left_out"),
    [
        ("# comment\n\n   \n*.log", "a.log", True),
        ("*.log\n!keep.log", "keep.log", False),
        ("!keep.log\n*.log", "keep.log", True),
        ("/top", "x/top", False),
        ("x/top", "y/x/top", False),
        ("name \\ ", "name  ", True),
        ("trailing   ", "trailing", True),
        ("win.txt\r\n", "win.txt", True),
        ("*a" * 600, "a", False),
    ],
)
def test_gitignore_lines(lines: str, path: str, left_out: bool) -> None:
    assert IgnoreRules(".", walk.parse_ignore_rules(lines)).is_ignored(path, False) is left_out


def test_rules_of_a_folder_come_before_those_above() -> None:
    above = IgnoreRules(".", walk.parse_ignore_rules("*.log"))
    below = IgnoreRules("sub", walk.parse_ignore_rules("!keep.log"), above)
    assert below.is_ignored("sub/keep.log", False) is False
    assert below.is_ignored("sub/other.log", False) is True


def test_types_have_names_people_use() -> None:
    assert find_type_globs("py") == find_type_globs("python") == find_type_globs(".py") == GLOBS_BY_TYPE["py"]
    with pytest.raises(Refusal) as caught:
        find_type_globs("pyt")
    assert caught.value.problem.code is Code.INVALID_ARGUMENTS
    assert "`py`" in caught.value.problem.way_out
    assert all(compile_glob(f"**/{one}") for globs_ in GLOBS_BY_TYPE.values() for one in globs_)


PARTS = st.sampled_from(
    ["a", ".env", ".ssh", "id_rsa", "credentials.py", "credentials.json", "x.pem", ".ENV", "env", ".aws"]
)


@given(st.lists(PARTS, min_size=1, max_size=3).map("/".join))
def test_secrets_are_those_of_the_model(path: str) -> None:
    assert may_hold_secrets(path) is is_secret(path)


def test_the_cache_of_patterns_is_bounded() -> None:
    assert globs.compile_glob.cache_info().maxsize is not None
