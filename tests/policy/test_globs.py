"""Does a pattern fit what it should, at once, whatever is written in it?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.policy.globs import Impossible, compile_path_glob, compile_text_glob, split_path
from tests.sizes import scale


def test_hostile_patterns_and_texts_take_no_time() -> None:
    fits = compile_text_glob("*a*a*a*a*a*a*a*a*b", cautious=True)
    assert fits("a" * 60_000) is False
    deep = compile_path_glob("**/a/**/a/**/a/**/b", cautious=True)
    assert deep("a/" * 30_000) is False


def test_lexical_paths() -> None:
    assert split_path("./a//b/../c/.") == ("a", "c")
    assert split_path("../../a") == ("..", "..", "a")
    assert split_path("a/../../b") == ("..", "b")
    assert split_path("/../a") == ("/", "a")
    assert split_path("/w/x/a", ("/w/x/",)) == ("a",)
    assert split_path("/w/xy/a", ("/w/x",)) == ("/", "w", "xy", "a")
    assert split_path("") == ()


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(st.text(alphabet="ab*?/.", min_size=1, max_size=12), st.text(alphabet="ab/.", max_size=16))
def test_a_path_that_is_allowed_by_a_pattern_is_denied_by_it(pattern: str, path: str) -> None:
    try:
        literal, careful = compile_path_glob(pattern, False), compile_path_glob(pattern, True)
    except Impossible:
        return
    assert bool(literal(path)) <= bool(careful(path))
