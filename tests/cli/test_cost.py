"""Are tokens counted as the o200k encoding counts them?"""

import pytest

from bench.tokens import tokens


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("hello world", 2),
        ("naïve café Straße ÅÄÖ", 8),
        ("日本語のテキスト。漢字とかな", 11),
        ("\t\tif x:\r\n\t\t\treturn  y   # tabs", 11),
        ("1234567890 12,345.67 0xDEADBEEF", 16),
    ],
)
def test_counts_equal_those_of_the_reference_encoders(text: str, count: int) -> None:
    assert tokens(text) == count


def test_a_structure_costs_what_its_compact_json_costs() -> None:
    assert tokens({"name": "é", "items": [1, 2]}) == tokens('{"name":"é","items":[1,2]}')
