"""Are words written out, and variables set, only as far as the line says what its variables contain?"""

import pytest

from mcp_server.model.shell import ShellCommand
from tools.shell.line_scope import SCOPED_BUILTINS, LineScope
from tools.shell.line_values import read_values
from tools.shell.lines import read_line
from tools.shell.verdicts import CommandKind, NeedsApproval


def read_last(line: str) -> tuple[LineScope, ShellCommand]:
    """The last command of the line, and what is known of `x` and `d` there."""
    read = read_line(line)
    assert read
    return LineScope(read_values(read), frozenset(("x", "d"))), read.commands[-1]


@pytest.mark.parametrize(
    ("line", "spelled"),
    [
        ("x=3; ls $x", ["ls 3"]),
        ("x=a; x=b; ls $x/y", ["ls a/y", "ls b/y"]),
        ("x='a b'; ls \"$x\"", ["ls 'a b'"]),
        ('x=a; ls < "$x"', ["ls <a"]),
        ("x='a b'; ls $x", ["ls $x"]),
        ("x=ls; $x y", ["ls y"]),
        ("x=read; $x y", ["$x y"]),
        ("x=$?; ls > $x", ["ls > $x"]),
        ('d=$PWD; ls "$d"', ['ls "$d"']),
        ("d=a; d=b; cd $d", ["cd $d"]),
        ("x=$(cat y); ls $x", ["ls $x"]),
    ],
)
def test_a_word_is_written_out_if_it_is_known(line: str, spelled: list[str]) -> None:
    scope, command = read_last(line)
    assert [" ".join(word.source for word in words) for words in scope.spell_all(command.words)] == spelled


@pytest.mark.parametrize("line", ["x=$!; kill -9 $x", "kill $!", "kill %1", "let x=3", "local x=$y", "declare x=3 -a"])
def test_a_builtin_may_do_this(line: str) -> None:
    scope, command = read_last(line)
    assert SCOPED_BUILTINS[command.words[0].text](scope, command.words) is CommandKind.READS


@pytest.mark.parametrize(
    "line",
    [
        "kill 1",
        "x=1; kill $x",
        "kill -- -1",
        "let x=y",
        "let PATH=3",
        "local PATH=3",
        "local -n x=y",
        "declare x=$y",
        "x=(1); local x=$y",
        "readonly x=$y",
    ],
)
def test_a_builtin_needs_approval_for_that(line: str) -> None:
    scope, command = read_last(line)
    with pytest.raises(NeedsApproval):
        SCOPED_BUILTINS[command.words[0].text](scope, command.words)
