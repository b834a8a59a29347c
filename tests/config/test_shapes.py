"""Is what fits a shape kept, and every part that does not named at its line?"""

import pytest

from mcp_server.config.faults import FaultCollector
from mcp_server.config.reader import Fields, parse_yaml
from mcp_server.config.shapes import (
    BoolField,
    EnumField,
    IntField,
    KeySpec,
    LineField,
    ListField,
    RecordField,
    TextOrField,
    fit,
    get_flag,
    get_leaves,
    get_number,
    get_records,
    get_text,
)

ROW = RecordField({"name": KeySpec(LineField(10), "its name", required=True)}, "A row.")
SHAPE = RecordField(
    {
        "name": KeySpec(LineField(10, r"[a-z]+", "small letters"), "its name", required=True),
        "count": KeySpec(IntField(1, 9), "how many"),
        "live": KeySpec(BoolField(), "whether"),
        "colour": KeySpec(EnumField(("red", "green")), "which"),
        "many": KeySpec(ListField(LineField(5), max_items=3), "several"),
        "rows": KeySpec(ListField(TextOrField(LineField(10), ROW)), "rows"),
    },
    "A thing.",
)


def read(text: str) -> tuple[Fields, list[tuple[int, str, str]]]:
    findings = FaultCollector()
    node = parse_yaml(text, "file.yaml", findings)
    assert node is not None
    found = fit(node, SHAPE, findings)
    assert isinstance(found, Fields)
    return found, [(fault.line, fault.key, fault.message) for fault in findings.faults()]


def test_what_fits_is_read() -> None:
    found, faults = read("name: abc\ncount: 5\nlive: true\ncolour: red\nmany: [a, b]\nrows: [x, {name: z}]\n")
    assert faults == []
    assert (get_text(found, "name"), get_number(found, "count"), get_flag(found, "live", False)) == ("abc", 5, True)
    assert [leaf.text for leaf in get_leaves(found, "many")] == ["a", "b"]
    assert [get_text(row, "name") for row in get_records(found, "rows")] == ["z"]


def test_what_is_left_out_is_what_was_said_to_be_usual() -> None:
    found, _ = read("name: abc\n")
    assert (get_text(found, "colour"), get_number(found, "count")) == ("", None)
    assert get_flag(found, "live", True) is True
    assert get_leaves(found, "many") == ()


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("count: 5\n", 1, "name", "this key is missing"),
        ("name: abc\ncont: 5\n", 2, "cont", "there is no key `cont` here"),
        ("name: ABC\n", 1, "name", "small letters"),
        ("name: abc\ncount: 10\n", 2, "count", ""),
        ("name: abc\ncount: five\n", 2, "count", ""),
        ("name: abc\nlive: maybe\n", 2, "live", ""),
        ("name: abc\ncolour: blue\n", 2, "colour", ""),
        ("name: abc\nmany: [a, b, c, d]\n", 2, "many", "the list has 4 entries; the limit is 3"),
        ("name: abc\nmany:\n  - a\n  - a\n", 4, "many[1]", "is in the list twice, first on line 3"),
        ("name: abc\nmany: a\n", 2, "many", "a list"),
        ("name: abc\nrows:\n  - {nme: x}\n", 3, "rows[0].nme", "there is no key `nme` here"),
    ],
)
def test_what_does_not_fit_is_named_where_it_stands(text: str, line: int, key: str, message: str) -> None:
    _, faults = read(text)
    assert (line, key) in [(fault[0], fault[1]) for fault in faults]
    assert any(message in fault[2] for fault in faults)
