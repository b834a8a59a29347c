"""Which file does a compiler write, and which of its words do more than compile?"""

import pytest

from tools.shell.compilers import find_compiled_file
from tools.shell.program_arguments import MatchedNames


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("a.c", "."),
        ("-O2 -Wall -o build/a a.c -lm", "build/a"),
        ("-c -I include -DX=1 a.c", "."),
        ("-x c -o a -", "a"),
        ("-o", None),
        ("-o -x a.c", None),
        ("-oa a.c", None),
        ("@x", None),
        ("-fplugin=x a.c", None),
        ("-Wl,-x a.c", None),
        ("-wrapper x a.c", None),
    ],
)
def test_it_writes(words: str, written: str | None) -> None:
    assert find_compiled_file(words.split()) == written


def test_names_that_a_pattern_fits() -> None:
    assert find_compiled_file([MatchedNames("src/*.c")]) == "."
    assert find_compiled_file([MatchedNames("-*.c")]) is None
