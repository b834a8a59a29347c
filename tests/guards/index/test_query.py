"""Does a search find what reading every file would find, in one order, and nothing that lies elsewhere?"""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.query import Query, find_words
from mcp_server.model.results import Code, Refusal
from tests.guards.index.ground import IndexWorkspace, by_git, pieces, scanned
from tests.sizes import scale

WORDS = [
    "über_maß",
    "open",
    "Open",
    "store",
    "parseHttp",
    "parse_http",
    "HTTPServer",
    "größe",
    "x1",
    "_",
    "日本",
    "NEAR",
    "AND",
]
LINES = st.lists(st.sampled_from([*WORDS, "(", '"', "-", ".", "*", " "]), max_size=6).map(" ".join)
TEXTS = st.lists(LINES, max_size=5).map("\n".join)
NAMES = st.sampled_from(["a.py", "b.md", "src/a.py", "src/deep/c.txt", "src/open.py", "build/x.py", "z.log"])
IGNORES = st.sampled_from(["", "build/\n", "*.log\n", "src/*\n!src/a.py\n", "/a.py\n"])
QUERIES = st.lists(
    st.sampled_from(["open", "store", "http", "größe", "日本", "near", "pa*", "h*", '"open store"']),
    min_size=1,
    max_size=3,
)


@pytest.mark.heavy
@settings(max_examples=scale(100), deadline=None)
@given(st.dictionaries(NAMES, TEXTS, max_size=6), IGNORES, QUERIES)
def test_a_search_agrees_with_reading_everything(files: dict[str, str], ignore: str, query: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ground = IndexWorkspace(Path(folder))
        for path, text in files.items():
            ground.put(path, text)
        ground.put(".gitignore", ignore)
        asked = " ".join(query)
        expected = scanned(ground.root, by_git(ground.root), asked)
        ground.refresh()
        hits = ground.hits(asked)
        assert {(hit.path, hit.line) for hit in hits.shown} == set(expected)
        assert (hits.total, hits.files, hits.complete) == (len(expected), len({path for path, _ in expected}), True)
        assert all(hit.score // 1000 >= expected[hit.path, hit.line] for hit in hits.shown)
        assert [hit.score for hit in hits.shown] == sorted((hit.score for hit in hits.shown), reverse=True)
        # The same again, and in pages: one order, whatever the limit.
        assert ground.hits(asked) == hits
        paged = [hit for at in range(0, hits.total, 2) for hit in ground.hits(asked, limit=2, offset=at).shown]
        assert tuple(paged) == hits.shown


@given(st.text(alphabet="aAbB1_é", max_size=12))
def test_a_name_is_taken_apart_where_a_reader_would(word: str) -> None:
    assert find_words(word) == set([word.casefold(), *pieces(word)] if word else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parseHTTPRequest2", {"parsehttprequest2", "parse", "http", "request", "2"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("Straße ΣΑΣ", {"strasse", "σασ"}),
        ("über_maß", {"über_mass", "über", "mass"}),
        ("_private", {"_private", "private"}),
        ("a-b.c", {"a", "b", "c"}),
        ("", set[str]()),
        ("x" * 100, {"x" * 64}),
    ],
)
def test_what_a_word_is(text: str, found: set[str]) -> None:
    assert find_words(text) == found


@pytest.mark.parametrize(
    "query",
    [
        *('foo"bar', "NEAR(", "NEAR(a b, 5)", "col:x", "-x", "*", "^a", "a AND", "OR NOT", "(((", "{held} : x", '""'),
        *("'; DROP TABLE files; --", "\x00a", "a" * 1000, "%_", "\\", "a*b*c*"),
    ],
)
def test_what_an_engine_would_obey_is_only_words_here(query: str, tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    ground.put("a.txt", "foo bar near col x and or not held drop table files a b c 5\n")
    ground.refresh()
    if not Query.parse(query).terms:
        with pytest.raises(Refusal) as refused:
            ground.hits(query)
        assert refused.value.problem.code is Code.INVALID_ARGUMENTS
        return
    assert ground.hits(query).complete
    ground.symbols(query)
    assert ground.find("foo") == [("a.txt", 1)]


def test_what_fits_best_comes_first(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    ground.put("a.py", "# retry and backoff\n# retry\n")
    ground.put("b.py", "def retry():\n    backoff = 1\n")
    ground.put("retry.py", "x = 'retry', 'backoff'\n")
    ground.put("c.py", "retry_backoff = retryBackoff\n")
    assert ground.find("retry backoff") == [
        ("retry.py", 1),  # both words, and the path says one of them
        ("a.py", 1),
        ("c.py", 1),  # both words, as parts of others
        ("b.py", 1),  # one word, which is defined there
        ("a.py", 2),
        ("b.py", 2),
    ]


def test_every_term_has_to_be_somewhere_in_the_file_as_it_was_written(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    ground.put("a.txt", "open\nstore\n")
    ground.put("b.txt", "open store\n")
    ground.put("c.txt", "parse\nhttp\nopen\n")
    assert ground.find('open "open store"') == [("b.txt", 1)]
    assert ground.find("open store") == [("b.txt", 1), ("a.txt", 1), ("a.txt", 2)]
    assert ground.find("open parseHttp") == []


def test_a_place_and_a_pattern_narrow_it(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    for path in ("a.py", "src/a.py", "src/b.md", "srcs/a.py", "src/deep/c.py"):
        ground.put(path, "word\n")
    assert ground.find("word", path="src") == [("src/a.py", 1), ("src/b.md", 1), ("src/deep/c.py", 1)]
    assert ground.find("word", path="src/a.py") == [("src/a.py", 1)]
    assert ground.find("word", glob="*.py;!srcs/**") == [("a.py", 1), ("src/a.py", 1), ("src/deep/c.py", 1)]
    assert ground.find("word", path=str(tmp_path / "src"), glob="*.md") == [("src/b.md", 1)]
    for wanted, code in (
        ({"path": "nowhere"}, Code.NOT_FOUND),
        ({"path": "../"}, Code.PATH_REFUSED),
        ({"path": ".menugate"}, Code.PATH_REFUSED),
        ({"glob": "{a" * 200 + ",b}" * 200}, Code.INVALID_ARGUMENTS),
    ):
        with pytest.raises(Refusal) as refused:
            ground.hits("word", **wanted)
        assert refused.value.problem.code is code


def test_symbols_are_found_by_name_and_by_part(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    ground.put("a.py", "class Store:\n    def open(self): pass\ndef reopen(): pass\nOPEN = 1\n")
    ground.put("b/c.md", "# Open questions\n")

    def names(query: str, **wanted: Any) -> list[str]:
        return [one.full_name for one in ground.symbols(query, **wanted).shown]

    assert names("open") == ["Store.open", "OPEN", "Open questions", "reopen"]
    assert names("OPEN")[0] == "OPEN"
    assert names("Store.open") == ["Store.open"]
    assert names("Store::open") == names("store open") == ["Store.open"]
    assert names("open", kind="function") == ["reopen"]
    assert names("", path="a.py") == ["Store", "Store.open", "reopen", "OPEN"]
    assert names("", path="b") == ["Open questions"]
    assert names("%") == names("")
    assert names("nothing") == []
    with pytest.raises(Refusal):
        ground.symbols("x", kind="spoon")


def test_a_long_line_is_shown_around_what_was_looked_for(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    ground.put("a.txt", "x " * 100_000 + "needle" + " y" * 100_000)
    (hit,) = (ground.refresh(), ground.hits("needle"))[1].shown
    assert "needle" in hit.text
    assert len(hit.text) < 250
