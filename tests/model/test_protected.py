"""Is the person asked about the paths of tests/tables/places.yaml, and about no others?"""

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.files import Stamp, is_protected, is_secret
from tests.yaml_text import load_yaml

TABLE = Path(__file__).parents[1] / "tables" / "places.yaml"
PLACES = cast(dict[str, list[str]], load_yaml(TABLE.read_text()))


@pytest.mark.parametrize("path", PLACES["protected"])
def test_protected(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize("path", PLACES["secret"])
def test_secret(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize("path", PLACES["neither"])
def test_neither(path: str) -> None:
    assert not is_protected(path)
    assert not is_secret(path)


@given(st.lists(st.sampled_from(["a", "b.txt", ".", "", "c d"])), st.sampled_from(PLACES["protected"]))
def test_what_lies_above_does_not_matter(above: list[str], path: str) -> None:
    assert is_protected("/".join([*above, path]))


@given(st.text())
def test_any_path_has_an_answer(path: str) -> None:
    assert isinstance(is_protected(path), bool)
    assert isinstance(is_secret(path), bool)


def test_a_stamp_fits_by_content_where_the_content_is_known() -> None:
    seen = Stamp(3, 1, "abc")
    assert seen.is_same_as(Stamp(3, 2, "abc"))
    assert not seen.is_same_as(Stamp(3, 1, "abd"))
    assert seen.is_same_as(Stamp(3, 1, ""))
    assert not seen.is_same_as(Stamp(3, 2, ""))
    assert not seen.is_same_as(Stamp(4, 1, ""))
