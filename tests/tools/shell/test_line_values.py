"""Is a variable's value known only if nothing in the line could make it another one?"""

import pytest

from tools.shell.line_values import read_values
from tools.shell.lines import read_line

SURE = frozenset(("x",))


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("x=3", "3"),
        ("x=3; x=4", "3 4"),
        ("y=3; x=$y", "3"),
        ("for x in 1 2; do a; done", "1 2"),
        ("for x in {1..3}; do a; done", "1 2 3"),
        ("x=(a b)", "a b"),
        ("a=(1 2); for x in ${a[@]}; do b; done", "1 2"),
        ("x='a'b\"c\"", "abc"),
        ("x=3; ls; echo read; grep x y", "3"),
        ("trap 'x=4' EXIT; x=3", "3 4"),
    ],
)
def test_its_texts_are_known(line: str, texts: str) -> None:
    read = read_line(line)
    assert read
    assert read_values(read).find("x", SURE).texts == set(texts.split())


@pytest.mark.parametrize(
    "line",
    [
        "x=0; x=$((x + 1))",
        "x=$(ls | wc -l)",
        "x=$(wc -l < a)",
        "x=$?",
        "x=1; x+=2",
        "let x=3",
        "((x = 3))",
        "x=$(seq 3)",
    ],
)
def test_it_is_a_number(line: str) -> None:
    read = read_line(line)
    assert read
    assert read_values(read).find("x", SURE).is_counting()


@pytest.mark.parametrize(
    "line",
    [
        "x=3; read x",
        "x=3; command read -r x",
        "x=3; time read x",
        "x=3; ! read x",
        "x=3; mapfile x",
        "x=3; readarray -t x",
        "x=3; printf -v x a",
        "x=3; eval y",
        "x=3; . a",
        "x=3; source a",
        "x=3; getopts a x",
        "x=3; declare -i x",
        "x=3; declare -n y=x",
        "x=3; unset x",
        "x=3; exec y",
        "x=3; $y x",
        "x=3; x=$(cat a)",
        "x=3; x+=a",
        "x=3; x[0]=$y",
        "x=3; : ${x:=y}",
        "x=3; for x in *; do a; done",
        "x=3; for x; do a; done",
        "x=3; y=$(read x)",
        "x=3; f() { read x; }",
        "x=3; trap 'read x' EXIT",
        'x=3; trap "$y" EXIT',
        "x=3; x=a y",
        "x=3; x=~",
        "x=3; x=$1",
        "x=3; x=$(wc -l *)",
        "x=3; x=$(echo a; wc -l < b)",
        "x=3; select x in a; do b; done",
    ],
)
def test_it_may_be_anything(line: str) -> None:
    read = read_line(line)
    assert read
    value = read_values(read).find("x", SURE)
    assert not value.is_counting()


def test_what_the_line_has_not_surely_set_is_unknown() -> None:
    read = read_line("x=3")
    assert read
    assert read_values(read).find("x", frozenset()).texts is None
