"""Does a reference stand for its value, and for nothing else?"""

import pytest

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.reader import Leaf
from mcp_server.config.value_references import ValueReader, ValueSources, list_secret_names

VARIABLES = {"A": "1", "EMPTY": "", "NESTED": "${A}"}


def fill_in(text: str) -> tuple[str, int]:
    findings = FaultCollector()
    reader = ValueReader(ValueSources(VARIABLES.get, lambda name: f"<{name}>"), findings)
    return reader.fill_in(Leaf(text, False, SourceLocation("f", 1))), len(findings.faults())


@pytest.mark.parametrize(
    ("text", "value", "faults"),
    [
        ("plain $A $ {A}", "plain $A $ {A}", 0),
        ("${A}${A}", "11", 0),
        ("${EMPTY}", "", 0),
        ("${EMPTY:-x}", "x", 0),
        ("${NOPE:-}", "", 0),
        ("${NOPE:-a:-b c}", "a:-b c", 0),
        ("${NESTED}", "${A}", 0),
        ("${secret:K}", "<K>", 0),
        ("Bearer ${secret:a.b-c}!", "Bearer <a.b-c>!", 0),
        ("${NOPE}", "", 1),
        ("${}", "", 1),
        ("${A", "", 1),
        ("${a b} ${NOPE}", " ", 2),
        ("${secret:}", "", 1),
        ("${env:A}", "", 1),
    ],
)
def test_references_are_filled_in_once(text: str, value: str, faults: int) -> None:
    assert fill_in(text) == (value, faults)


def test_secrets_in_a_value_are_known() -> None:
    assert list_secret_names("${secret:a} ${A} ${secret:b}") == ["a", "b"]
