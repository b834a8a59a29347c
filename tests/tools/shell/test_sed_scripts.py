"""Is a sed script that can start a program or write a file noticed, however it is written?"""

import pytest

from tools.shell.program_arguments import ONE_UNKNOWN
from tools.shell.sed_scripts import SedCall, read_sed_call


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["-n", "1,5p", "a"], SedCall(False, ("a",))),
        (["s/a/b/g; s|c\\|d|e|I;y/ab/cd/", "a"], SedCall(False, ("a",))),
        (["-e", "/x/,$!d", "-Ee", "5q", "a"], SedCall(False, ("a",))),
        (["$!{N;D}\n1~2{=;p}; 0,/x/d # end", "a"], SedCall(False, ("a",))),
        (["-i.bak", "s/[x]y//", "a", "b"], SedCall(True, ("a", "b", "a.bak", "b.bak"))),
        (["a\\\nnew e line\n1d", "a"], SedCall(False, ("a",))),
        (["--expression=p", "--in-place", "a"], SedCall(True, ("a",))),
        ([":a;N;$!ba;s/\\n/ /g"], SedCall(False, ())),
    ],
)
def test_it_only_edits(words: list[str], call: SedCall) -> None:
    assert read_sed_call(words) == call


@pytest.mark.parametrize(
    ("words", "danger"),
    [
        ([], "sed"),
        (["-n"], "sed"),
        (["-f", "x"], "-f"),
        (["p", f"{ONE_UNKNOWN}x"], f"{ONE_UNKNOWN}x"),
        (["-e", f"{ONE_UNKNOWN}x"], f"{ONE_UNKNOWN}x"),
        (["1e x"], "e x"),
        (["s/a/b/e"], "s/a/b/e"),
        (["s/[/]w x//"], "s/[/]w x//"),
        (["s/a/b/gw x"], "s/a/b/gw x"),
        (["p;w x"], "w x"),
        (["{r x\n}"], "r x\n}"),
        (["a text\ne x"], "e x"),
        ([":a;e x"], "e x"),
        (["/[/]/e x"], "e x"),
        (["s/a/b\n/e x"], "s/a/b\n/e x"),
        (["-e", "p", "-e", "e x"], "e x"),
        (["\\,a,e x"], "\\,a,e x"),
    ],
)
def test_it_may_do_more(words: list[str], danger: str) -> None:
    assert read_sed_call(words) == danger
