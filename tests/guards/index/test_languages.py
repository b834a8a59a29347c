"""Is a file's language known by its name, and does each language's pattern find its own definitions and end?"""

import pytest

from mcp_server.guards.index.languages import find_language
from mcp_server.model.index import KINDS


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.py", "Python"),
        ("deep/a.PY", "Python"),
        ("a.ts", "JavaScript"),
        ("a.go", "Go"),
        ("a.rs", "Rust"),
        ("README.md", "Markdown"),
    ],
)
def test_a_language_is_known_by_the_files_ending(path: str, name: str) -> None:
    found = find_language(path)
    assert found is not None
    assert found.name.casefold() == name.casefold()


@pytest.mark.parametrize("path", ["a", "a.unknown", ".py/", "", "py"])
def test_any_other_file_is_of_none(path: str) -> None:
    assert find_language(path) is None


LINES = {
    "a.py": [
        ("class", "class App:", "App"),
        ("function", "def run(self):", "run"),
        ("function", "async def go():", "go"),
    ],
    "a.go": [("function", "func Run() {", "Run")],
    "a.rs": [("function", "pub fn run() {", "run")],
}


@pytest.mark.parametrize(("path", "kind", "line", "name"), [(path, *one) for path in LINES for one in LINES[path]])
def test_a_definition_is_found_by_its_line(path: str, kind: str, line: str, name: str) -> None:
    language = find_language(path)
    assert language is not None
    found = [
        match["name"] for one, pattern in language.compiled_patterns if (match := pattern.search(line)) and one == kind
    ]
    assert name in found


@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.js", "a.go", "a.rs", "a.java", "a.c", "a.rb", "a.md"])
def test_a_line_of_any_length_is_looked_through_in_one_pass(path: str) -> None:
    language = find_language(path)
    assert language is not None
    for kind, pattern in language.compiled_patterns:
        assert kind in KINDS
        for hostile in (" " * 20_000, "a" * 20_000, "(" * 20_000, "def " * 5_000):
            pattern.search(hostile)
