"""Does arithmetic that runs unasked only compute, and is everything named that it uses and sets?"""

import pytest

from tools.shell.arithmetic import find_first_set, read_arithmetic, read_delimited


@pytest.mark.parametrize(
    ("text", "uses", "sets"),
    [
        ("x + 1", "x", ""),
        ("$x * ${y}", "x y", ""),
        ("x = y", "y", "x"),
        ("x == y", "x y", ""),
        ("x <= 3 && y != 2", "x y", ""),
        ("x += 2", "x", "x"),
        ("x <<= 1", "x", "x"),
        ("x++", "x", "x"),
        ("--x", "x", "x"),
        ("10#$x + 16#ff + 0x1F", "x", ""),
        ("(x + 1) * (2 - $#)", "x", ""),
        ("x > 3 ? 1 : y", "x y", ""),
    ],
)
def test_it_names_what_it_uses_and_sets(text: str, uses: str, sets: str) -> None:
    read = read_arithmetic(text)
    assert read
    assert (read.uses, read.sets) == (set(uses.split()), set(sets.split()))


@pytest.mark.parametrize(
    "text", ["a[x]", "a[$(canary)]", "$(canary)", "`canary`", "x) + (y", "(x", "'x'", '"x"', "x\\", "${x:-y}", "${!x}"]
)
def test_what_may_do_more_is_not_read(text: str) -> None:
    assert read_arithmetic(text) is None


def test_only_what_stands_in_double_brackets_is_delimited() -> None:
    assert read_delimited("((x))") == read_delimited("$((x))") == read_arithmetic("x")
    assert read_delimited("(x)") is None
    assert read_delimited("$((a) + (b))") is None


@pytest.mark.parametrize(
    ("text", "names"),
    [("x = 3", "x"), ("x=1, y=2", "x y"), ("a && (x = 1)", ""), ("x == 1", ""), ("a ? 1 : 2, x=1", "")],
)
def test_it_knows_what_is_surely_set(text: str, names: str) -> None:
    assert find_first_set(text) == set(names.split())
