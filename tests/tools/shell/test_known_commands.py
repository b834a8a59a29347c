"""Which words of a program that is known still make it one that does more than it says?"""

import pytest

from tools.shell.allowed_words import allow_first_word, allow_only, allow_version, has_no_words
from tools.shell.known_commands import BUILDS, READS


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("printf", ["%s", "x"]),
        ("date", ["+%F", "-u"]),
        ("uniq", ["-c"]),
        ("git", ["-C", "sub", "status", "--short"]),
        ("git", ["config", "user.name"]),
        ("git", ["config", "--get", "user.name"]),
        ("git", ["branch", "--list", "a*"]),
        ("git", ["remote", "-v"]),
        ("sort", ["-u", "-k2"]),
        ("env", []),
    ],
)
def test_what_only_reads(program: str, words: list[str]) -> None:
    assert READS[program](words)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("printf", ["-v", "x", "%s"]),
        ("date", ["2026-01-01"]),
        ("uniq", ["a.txt", "b.txt"]),
        ("git", ["-C", "--exec-path=x", "status"]),
        ("git", ["-c", "core.pager=x", "log"]),
        ("git", ["config", "user.name", "Eve"]),
        ("git", ["branch", "new"]),
        ("git", ["log", "--output=a.txt"]),
        ("git", ["push"]),
        ("sort", ["-o", "a.txt"]),
        ("env", ["A=b", "rm"]),
        ("rg", ["--pre", "rm", "x"]),
    ],
)
def test_what_does_more(program: str, words: list[str]) -> None:
    assert not READS[program](words)


def test_a_program_known_for_both_reads_only_with_words_that_do_not_build() -> None:
    both = READS.keys() & BUILDS.keys()
    assert both
    formatters = {"clang-format", "gofmt"}  # these print every file that is named
    for program in both - formatters - {"git"}:
        assert not READS[program](["install", "x"]), program


def test_the_ways_to_say_which_words_fit() -> None:
    assert has_no_words([])
    assert not has_no_words(["x"])
    assert allow_version("--version", "-V")(["-V"])
    assert not allow_version("--version")(["--version", "x"])
    only = allow_only("-[ab]+", "--long(?:=.*)?")
    assert only(["-ab", "--long=x", "file", "-"])
    assert not only(["-abc"])
    first = allow_first_word({"show": only})
    assert first(["show", "-a"])
    assert not first(["show", "-c"])
    assert not first([])
