"""Do the forms of one word have one stem, and different words different ones?"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.policy.stems import stem
from tests.sizes import scale
from tests.yaml_text import load_yaml

TABLE: dict[str, Any] = load_yaml((Path(__file__).parents[1] / "tables" / "stems.yaml").read_text())


@pytest.mark.parametrize("forms", TABLE["same"])
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(word) for word in forms.split()}) == 1, {word: stem(word) for word in forms.split()}


@pytest.mark.parametrize("words", TABLE["different"])
def test_different_words_have_different_stems(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == len(words.split())


@pytest.mark.parametrize("word", TABLE["unchanged"])
def test_what_is_no_english_word_stays(word: str) -> None:
    assert stem(word) == word


@pytest.mark.heavy
@settings(max_examples=scale(5_000), deadline=None, derandomize=True)
@given(st.text(alphabet="aeioubdglnrstyz", min_size=1, max_size=14))
def test_a_stem_begins_like_its_word_and_is_never_empty(word: str) -> None:
    assert stem(word)
    assert stem(word)[:2] == word[:2]
