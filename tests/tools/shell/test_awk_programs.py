"""Is an awk program that can start a program or write a file noticed, however it is written?"""

import pytest

from tools.shell.awk_programs import find_awk_danger
from tools.shell.program_arguments import ONE_UNKNOWN, SOME_UNKNOWN


@pytest.mark.parametrize(
    "words",
    [
        ["{print $1}", "a", "b"],
        ["-F", ":", "-v", "x=1", "NR<3 || /a|b/ && !/c\\/d/", "a"],
        ["-F|", "$1 > 5 {n[$2]++} END {for (k in n) print k, n[k] / 2}", SOME_UNKNOWN],
        ['BEGIN { printf("%s\\n", substr("a\\"b", 1)); exit }'],
        ["/[|]x/ {x = y / 2 / z[1]; next}\n{print}"],
        ['{while ((getline line < "a") > 0) n++}'],
    ],
)
def test_it_only_prints(words: list[str]) -> None:
    assert find_awk_danger(words) == ""


@pytest.mark.parametrize(
    ("words", "danger"),
    [
        ([], "awk"),
        (["-f", "x.awk"], "-f"),
        (["-v", "x", "{}"], "x"),
        (["-v", f"{ONE_UNKNOWN}x", "{}"], "-v"),
        ([f"{ONE_UNKNOWN}x"], f"{ONE_UNKNOWN}x"),
        (["{system(x)}"], "system(x)}"),
        (["{print > x}"], "> x}"),
        (["/[/]x/"], "/[/]x/"),
        (["{print (1 > x)}"], "> x)}"),
        (["{print 1,\n2 > x}"], "> x}"),
        (["{x | getline}"], "| getline}"),
        (["{print |& x}"], "|& x}"),
        (["@load x"], "@load x"),
        (["{a = 1 \\\n/b|x/ c}"], "\\\n/b|x/ c}"),
        (['{print /"/; system(x)}'], '/"/; system(x)}'),
        (['{if (1) /"/; system(x)}'], '/"/; system(x)}'),
        (['{x = a # "\n; system(x)}'], '# "\n; system(x)}'),
    ],
)
def test_it_may_do_more(words: list[str], danger: str) -> None:
    assert find_awk_danger(words) == danger
