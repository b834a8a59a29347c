"""Is everything found that bash expands in a here-document, and is a document left alone where that is uncertain?"""

import pytest

from tools.shell.here_documents import scan_document


@pytest.mark.parametrize(
    ("text", "expansions", "lines"),
    [
        ("It's a 'b\n", [], []),
        ("it's $x ${y} $1\n", ["$x", "${y}", "$1"], []),
        ("it's $((1 + x))\n", ["$((1 + x))"], []),
        ("it's $(ls $x) `pwd`\n", [], ["ls $x", "pwd"]),
        ("costs 5$, \\$x \\`ls\\`\n", [], []),
    ],
)
def test_it_finds_what_is_expanded(text: str, expansions: list[str], lines: list[str]) -> None:
    scanned = scan_document(text)
    assert scanned
    assert [*scanned.expansions] == expansions
    assert [line for _, line in scanned.substitutions] == lines
    assert all(text[at:].startswith(line) for at, line in scanned.substitutions)


@pytest.mark.parametrize(
    "text",
    ["${x:-'}'}", "$(echo ')')", "$(ls $(pwd))", "`ls", "$(ls", "`echo \\`ls\\``", "$((a[$(x)]))", "$['x']", "$'x'"],
)
def test_it_leaves_what_is_uncertain(text: str) -> None:
    assert scan_document(text) is None
