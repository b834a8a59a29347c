"""Is a word written out only if it is known what it becomes, and as one word?"""

import pytest

from tools.shell.word_values import EMPTY, NUMBER, OWN_TEMPORARY, UNKNOWN, Value, evaluate_word, spell_source

VALUES = {
    "n": NUMBER,
    "x": Value(frozenset(("a", "b"))),
    "s": Value(frozenset(("a b",))),
    "g": Value(frozenset(("*",))),
    "e": EMPTY,
    "q": Value(frozenset(("it's",))),
    "d": Value(frozenset(('it\'s "$HOME"',))),
    "t": Value(frozenset((OWN_TEMPORARY,))),
}


def find(name: str) -> Value:
    return VALUES.get(name, UNKNOWN)


@pytest.mark.parametrize(
    ("source", "spelled"),
    [
        ("$x", ["a", "b"]),
        ('"$x"', ["a", "b"]),
        ("src/${x}.py", ["src/a.py", "src/b.py"]),
        ("$n", ["0"]),
        ('"$s"', ["'a b'"]),
        ('"$g"', ["'*'"]),
        ('"$q"', ['"it\'s"']),
        ('"$e"x', ["''x"]),
        ('"$t/a"', [f"{OWN_TEMPORARY}/a"]),
        ("'$x'", ["'$x'"]),
        ("$x*", ["a*", "b*"]),
    ],
)
def test_it_is_written_out(source: str, spelled: list[str]) -> None:
    found = spell_source(source, find)
    assert found
    assert [one.source for one in found] == spelled


@pytest.mark.parametrize(
    "source",
    ["$s", "$g", "$e", '"$d"', "$y", '"${t}x"', '"a$t"', "$(ls)", "$1", '"$@"', "~/$x", "{$x,b}", "$'x'", "\\$x"],
)
def test_it_is_left_as_it_is(source: str) -> None:
    assert spell_source(source, find) is None


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("$s", VALUES["s"]),
        ("$n", NUMBER),
        ("$((1 + n))", NUMBER),
        ("$(mktemp -d)", VALUES["t"]),
        ("$(mktemp -p .)", UNKNOWN),
        ("$(date)", UNKNOWN),
        ("a$n", UNKNOWN),
        ("", EMPTY),
    ],
)
def test_an_assignment_sets_it(source: str, value: Value) -> None:
    assert evaluate_word(source, find) == value
