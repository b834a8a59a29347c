"""Is what a server says read in every shape that the protocol knows, and is any other none?"""

from typing import Any

import pytest

from tools.lsp.protocol import (
    get_kind_name,
    parse_diagnostics,
    parse_hover,
    parse_locations,
    parse_symbols,
    parse_workspace_edit,
    to_list,
    to_number,
)

URI = "file:///work/a.py"


def span(line: int = 0) -> dict[str, Any]:
    return {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 3}}


@pytest.mark.parametrize(
    "result",
    [
        {"uri": URI, "range": span()},
        [{"uri": URI, "range": span()}],
        [{"uri": URI, "range": span()}, {"uri": URI, "range": span()}],
        [{"targetUri": URI, "targetRange": span(9), "targetSelectionRange": span()}],
        [{"targetUri": URI, "targetRange": span()}],
    ],
)
def test_a_place_in_any_of_its_shapes(result: Any) -> None:
    (place,) = parse_locations(result)
    assert (place.uri, place.start) == (URI, span()["start"])


@pytest.mark.parametrize("result", [None, 7, "x", [], [None], [{"uri": 7, "range": span()}], [{"uri": URI}]])
def test_what_is_no_place_is_none(result: Any) -> None:
    assert parse_locations(result) == []


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        ("words", "words"),
        ({"kind": "markdown", "value": "words"}, "words"),
        ({"language": "python", "value": "x = 1"}, "```python\nx = 1\n```"),
        (["one", {"language": "", "value": "two"}, " "], "one\n\ntwo"),
        (None, ""),
        ({"value": 7}, ""),
    ],
)
def test_a_hover_in_any_of_its_shapes(contents: Any, text: str) -> None:
    assert parse_hover({"contents": contents}) == text


def test_symbols_are_named_by_what_holds_them() -> None:
    tree = [{"name": "A", "kind": 5, "range": span(), "children": [{"name": "run", "kind": 6, "range": span(1)}]}]
    assert [(one.path, one.kind) for one in parse_symbols(tree, URI)] == [("A", "class"), ("A/run", "method")]
    flat = [{"name": "run", "kind": 6, "containerName": "A", "location": {"uri": URI, "range": span()}}]
    assert [one.path for one in parse_symbols(flat, URI)] == ["A/run"]


def test_a_tree_that_is_too_deep_ends() -> None:
    deep: dict[str, Any] = {"name": "x", "kind": 5, "range": span()}
    for _ in range(10_000):
        deep = {"name": "x", "kind": 5, "range": span(), "children": [deep]}
    assert len(parse_symbols([deep], URI)) < 1_000


def test_problems_have_a_severity_and_a_code_where_they_say_so() -> None:
    items = [
        {"range": span(), "severity": 2, "code": "W1", "message": "odd\n  thing"},
        {"range": span(), "severity": 99, "message": "no such severity"},
        {"range": span(), "code": 0, "message": {"value": "marked up"}},
        {"message": "nowhere"},
    ]
    expected = ["warning W1: odd thing", "error: no such severity", "error 0: marked up"]
    for key in ("items", "diagnostics"):
        assert [one.text for one in parse_diagnostics({key: items}, URI)] == expected


def test_an_edit_in_either_of_its_forms() -> None:
    edits = [{"range": span(), "newText": "new"}]
    for result in ({"changes": {URI: edits}}, {"documentChanges": [{"textDocument": {"uri": URI}, "edits": edits}]}):
        (edit,) = parse_workspace_edit(result)
        assert (edit.range.uri, edit.text) == (URI, "new")


@pytest.mark.parametrize(("value", "number"), [(7, 7), (0, 0), (-1, 0), (True, 0), ("7", 0), (1 << 40, 0), (None, 0)])
def test_a_number_is_one_or_nothing(value: object, number: int) -> None:
    assert to_number(value) == number


def test_one_is_a_list_of_one() -> None:
    assert (to_list(None), to_list(7), to_list([7])) == ([], [7], [7])
    assert (get_kind_name(6), get_kind_name(0), get_kind_name(True), get_kind_name("6")) == ("method", *["symbol"] * 3)
