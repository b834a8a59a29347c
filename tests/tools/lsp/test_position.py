"""Which place is meant, when it is named and not counted?"""

from typing import Any

import pytest

from mcp_server.model.results import Code
from tests.tools.lsp.ground import Started, problem

pytestmark = pytest.mark.anyio


async def test_where_a_symbol_is_meant_to_be(started: Started) -> None:
    tree = [
        {"name": "A", "kind": 5, "range": span(0), "selectionRange": span(0), "children": [symbol("run", 6, 0)]},
        {"name": "B", "kind": 5, "range": span(4), "selectionRange": span(4), "children": [symbol("run", 6, 4)]},
    ]
    async with started(on={"textDocument/documentSymbol": [["answer", tree]]}) as one:
        ambiguous = await problem(one, symbol="run", line=None)
        assert ambiguous.code is Code.AMBIGUOUS_MATCH
        assert "on lines 1 (`A/run`), 5 (`B/run`)" in ambiguous.message
        for spelling in ("B/run", "B.run", "B::run"):
            assert (await one.text("hover_symbol", symbol=spelling)).startswith("greet\n")
        missing = await problem(one, symbol="name", line=None)
        assert missing.code is Code.NO_MATCH
        assert "declares no `name`. It is on line 1, 2." in missing.message
        assert (await one.text("document_symbols")).startswith("a.py:1:1\tclass A\n")
        assert "a.py:5:1\tmethod B/run\n" in await one.text("document_symbols")


def span(line: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}}


def symbol(name: str, kind: int, line: int) -> dict[str, Any]:
    return {"name": name, "kind": kind, "range": span(line), "selectionRange": span(line)}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"symbol": "name", "line": 5}, Code.NO_MATCH, "which reads `greet(greet)`. It is on line 2, 1."),
        ({"symbol": "nope", "line": 5}, Code.NO_MATCH, "The file does not contain it."),
        ({"symbol": "greet", "line": 6}, Code.INVALID_ARGUMENTS, "`a.py` has only 5 lines, no line 6."),
    ],
)  # fmt: skip
async def test_what_cannot_be_pointed_at(started: Started, arguments: dict[str, Any], code: Code, said: str) -> None:
    async with started() as one:
        ending = await problem(one, "goto_definition", **arguments)
        assert ending.code is code
        assert said in ending.message
