"""Does the index find what a file defines, as exactly as Python's own parser, and however hostile the file is?"""

import ast
import asyncio
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.guards.index.languages import LANGUAGES_BY_EXTENSION
from mcp_server.guards.index.symbols import find_defined_symbols, mask_non_code
from mcp_server.model.index import KINDS
from tests.sizes import sample, scale
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "tables" / "symbols.yaml").read_text())
HOUSE = Path(__file__).parents[3]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_what_a_file_defines(case: dict[str, Any]) -> None:
    found = [
        f"{one.kind} {one.full_name} {one.line}-{one.last}" for one in find_defined_symbols(case["file"], case["text"])
    ]
    assert found == case["defines"]
    lines = case["text"].split("\n")
    assert all(
        one.text == lines[one.line - 1].strip()[:200] for one in find_defined_symbols(case["file"], case["text"])
    )


def test_every_language_has_its_case_and_every_kind_is_named() -> None:
    shown = {
        LANGUAGES_BY_EXTENSION[case["file"].rpartition(".")[2]].name
        for case in CASES
        if "." in case["file"] and case["defines"]
    }
    assert shown == {tongue.name for tongue in LANGUAGES_BY_EXTENSION.values()}
    assert {kind for tongue in LANGUAGES_BY_EXTENSION.values() for kind, _ in tongue.patterns} <= set(KINDS)


def parsed(text: str) -> set[tuple[str, int, int, str]]:
    found: set[tuple[str, int, int, str]] = set()

    def look(node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = within
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add((child.name, child.lineno, child.end_lineno or 0, within))
                inner = f"{within}.{child.name}" if within else child.name
            look(child, inner)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        look(ast.parse(text), "")
    return found


def python_files() -> Iterator[Path]:
    """Ours, and a part of what comes with Python, which nobody wrote for this test."""
    yield from sorted(HOUSE.glob("mcp_server/**/*.py"))
    for module in (asyncio, json):
        yield from sorted(Path(str(module.__file__)).parent.glob("**/*.py"))
    yield from sorted(Path(str(ast.__file__)).parent.glob("[a-d]*.py"))


@pytest.mark.heavy
def test_python_is_read_as_its_own_parser_reads_it() -> None:
    looked = 0
    for path in sample(python_files()):
        text = path.read_text(encoding="utf-8", errors="replace")
        found = {
            (one.name, one.line, one.last, one.within)
            for one in find_defined_symbols(path.name, text)
            if one.kind in ("class", "function", "method")
        }
        assert found == parsed(text), path
        looked += len(found)
    assert looked > scale(2000)


PIECES = [
    *(
        "a ",
        "a",
        "(",
        "{",
        "<",
        "a<",
        "a<>>",
        "static ",
        "\t",
        "public ",
        "impl ",
        "fn ",
        "func (",
        "'",
        '"',
        "`",
        "\\",
    ),
    *('"""', "/*", "#", "# a\n", "```\n", 'r#"', "--[[", "a::", "*", "a(b)", "a({", "x = (", "const x = (", "const a:"),
    *("export ", "def ", "class ", "class a\n", "type a<", "create ", "create table a.", "pub(a", "a a a a("),
    *("  a(b) {\n", "  a b c(d, e) f\n", "=begin\n", "'''", "};", "func (a b", "end\n", "  \n", "\x01", "é"),
    *("typedef a", "@a\n", "# a\n## b\n"),
]


@pytest.mark.parametrize(
    "ending",
    sorted({min(e for e, t in LANGUAGES_BY_EXTENSION.items() if t is one) for one in LANGUAGES_BY_EXTENSION.values()}),
)
def test_a_hostile_file_takes_no_longer_than_its_length(ending: str) -> None:
    for piece in (*PIECES, *(one + other for one, other in zip(PIECES[::3], PIECES[7::3], strict=False))):
        text = (piece * (20_000 // len(piece)))[:20_000]
        started = time.process_time()
        find_defined_symbols(f"x.{ending}", text)
        # A pattern that tries again what it tried needs minutes for this.
        assert time.process_time() - started < 1, repr(piece)


@pytest.mark.parametrize(
    "tongue", {one.name: one for one in LANGUAGES_BY_EXTENSION.values()}.values(), ids=lambda one: one.name
)
def test_hiding_keeps_every_line_where_it_is(tongue: Any) -> None:
    for case in CASES:
        code = mask_non_code(case["text"], tongue.comments, tongue.strings)
        assert [len(line) for line in code.split("\n")] == [len(line) for line in case["text"].split("\n")]
