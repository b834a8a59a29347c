"""Which names, values and web sites may a secret have?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.secrets import MAX_VALUE_BYTES, find_name_fault, find_value_fault, parse_origin
from tests.yaml_text import load_yaml

TABLE: dict[str, list[dict[str, str]]] = load_yaml((Path(__file__).parents[1] / "tables" / "secrets.yaml").read_text())


@pytest.mark.parametrize("row", TABLE["names"], ids=lambda row: repr(row["name"]))
def test_names(row: dict[str, str]) -> None:
    fault = find_name_fault(row["name"])
    assert (row["says"] in fault) if "says" in row else fault == ""


@pytest.mark.parametrize("row", TABLE["values"], ids=lambda row: repr(row["value"]))
def test_values(row: dict[str, str]) -> None:
    fault = find_value_fault(row["value"])
    assert (row["says"] in fault) if "says" in row else fault == ""
    assert len(row["value"].strip()) < 2 or row["value"].strip() not in fault, "a fault repeats no value"


def test_the_largest_value() -> None:
    assert find_value_fault("x" * MAX_VALUE_BYTES) == ""
    assert "bytes" in find_value_fault("x" * (MAX_VALUE_BYTES + 1))


@pytest.mark.parametrize("row", TABLE["origins"], ids=lambda row: repr(row["origin"]))
def test_web_sites(row: dict[str, str]) -> None:
    if "becomes" in row:
        assert parse_origin(row["origin"]) == row["becomes"]
        assert parse_origin(row["becomes"]) == row["becomes"], "the one spelling stays as it is"
    else:
        with pytest.raises(ValueError, match=row["says"]):
            parse_origin(row["origin"])


@given(st.text(max_size=60) | st.text("htps:/.@#?[]*a1-", max_size=30).map("https://".__add__))
def test_a_web_site_is_read_or_refused(text: str) -> None:
    try:
        origin = parse_origin(text)
    except ValueError as wrong:
        assert str(wrong).startswith("`")
    else:
        assert parse_origin(origin) == origin
        assert origin.isascii()
