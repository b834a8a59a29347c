"""Do both engines give the same answer to the same question, whatever lies in the workspace?"""

import shutil
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.model.files import Search, SearchResult
from tests.guards.search.ground import PRIVATE, finder
from tests.sizes import scale

Tree: TypeAlias = list[tuple[list[str], str, list[str], bool]]
Rules: TypeAlias = list[tuple[list[str], list[str]]]

NAMES = st.sampled_from(["a", "b", "c.py", "d.txt", ".e", "f.log", "build", "x y", "-n", "ü", ".git", PRIVATE])
FOLDERS = st.lists(st.sampled_from(["sub", "src", "build", ".h", "a"]), max_size=2)
LINES = ["", "foo", "Foo bar", "foobar foo", "  x", "ba", "é foo", "foo\r", "a" * 600]
CONTENT = st.lists(st.sampled_from(LINES), max_size=6)
RULE = st.sampled_from(["*.log", "build", "build/", "/a", "!f.log", "sub/*", "**/src", ".h/", "a/b", "c.*", "!c.py"])
RULES = st.lists(RULE, max_size=3)
TREES = st.lists(st.tuples(FOLDERS, NAMES, CONTENT, st.booleans()), max_size=8)
IGNORES = st.lists(st.tuples(FOLDERS, RULES), max_size=2)
WORDS = ["foo", "^foo", "foo$", "o+b?a", "[fb]o", r"\bfoo\b", "foo|ba", "^$", "x*", "é", "bar$", r"\w+ \w+", "(a+)+$"]
GLOBS = ["*.py", "!*.py", "sub/**", "*.{txt,log}", "a", "**/b", "[a-c]*"]
SEARCHES = st.builds(
    Search,
    st.sampled_from(WORDS),
    path=st.sampled_from(["", "", "sub", "src", "a"]),
    globs=st.lists(st.sampled_from(GLOBS), max_size=2).map(tuple),
    type=st.sampled_from([None, None, None, "py", "txt"]),
    ignore_case=st.booleans(),
    before=st.integers(0, 2),
    after=st.integers(0, 2),
    only_matching=st.booleans(),
    want=st.sampled_from(["files", "content", "count"]),
    limit=st.sampled_from([0, 3]),
    offset=st.integers(0, 2),
)
NAMED = ["*", "*.py", "**", "sub/*", "**/a", "*.{py,txt}", "s*/**/*b*", "a;b", "**;!*.py"]
ACROSS = st.sampled_from(["foo.bar", "foo\\n", "o.*b", "^foo\\n.*$", "(?:foo\\s)+", "x|foo\\nfoo", "\\n\\n", "bar$"])


def build(root: Path, tree: Tree, rules: Rules) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    (root / "src").mkdir()
    # A carriage return alone ends a line for ripgrep and not for us; with a line feed behind it, for both.
    texts = [("\n".join(lines) + "\n" * ends).removesuffix("\r") for _, _, lines, ends in tree]
    files = [("/".join([*folders, name]), text) for (folders, name, _, _), text in zip(tree, texts, strict=True)]
    files += [("/".join([*folders, ".gitignore"]), "\n".join(lines)) for folders, lines in rules]
    for path, content in files:
        target = root / path
        if not any(one.is_file() for one in target.parents) and not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode())


def comparable(found: SearchResult) -> SearchResult:
    return replace(found, engine="", searched=None)


@pytest.fixture
def both(ripgrep_works: bool, tmp_path: Path) -> Path:
    if not ripgrep_works:
        pytest.skip("there is one engine here")
    return tmp_path / "ws"


MODEST = settings(max_examples=scale(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.heavy
@MODEST
@given(TREES, IGNORES, st.lists(SEARCHES, min_size=1, max_size=2))
def test_lines(
    both: Path,
    tree: Tree,
    rules: Rules,
    searches: list[Search],
) -> None:
    build(both, tree, rules)
    for search in searches:
        if not (both / search.path).is_dir():
            search = replace(search, path="")
        one, two = finder(both, "ripgrep").grep(search), finder(both, "python").grep(search)
        assert one.engine == "ripgrep"
        assert comparable(one) == comparable(two)


@pytest.mark.heavy
@MODEST
@given(TREES, ACROSS, st.sampled_from(["files", "content", "count"]), st.integers(0, 1))
def test_across_lines(both: Path, tree: Tree, pattern: str, want: str, around: int) -> None:
    build(both, [(folders, name, [line.rstrip("\r") for line in lines], True) for folders, name, lines, _ in tree], [])
    search = Search(pattern, multiline=True, want=want, before=around, after=around, globs=("!.gitignore",))
    one, two = finder(both, "ripgrep").grep(search), finder(both, "python").grep(search)
    # Where a match may span lines the two count places differently; the lines that are shown are the same.
    assert replace(comparable(one), matches=None, lines=lines_of(one, want)) == replace(
        comparable(two), matches=None, lines=lines_of(two, want)
    )


def lines_of(found: SearchResult, want: str) -> tuple[str, ...]:
    return tuple(line.rsplit(":", 1)[0] for line in found.lines) if want == "count" else found.lines


@pytest.mark.heavy
@MODEST
@given(
    TREES, IGNORES, st.sampled_from(["*", "*.py", "**", "sub/*", "**/a", "*.{py,txt}", "s*/**/*b*", "a;b", "**;!*.py"])
)
def test_names(
    both: Path,
    tree: Tree,
    rules: Rules,
    pattern: str,
) -> None:
    build(both, tree, rules)
    one, two = finder(both, "ripgrep").glob(Search(pattern)), finder(both, "python").glob(Search(pattern))
    assert one.engine == "ripgrep"
    assert comparable(one) == comparable(two)
