"""Is a condition in `[[ ]]` one command again, with its `&&` and `||` in it?"""

import pytest

from tools.shell.conditions import join_conditions
from tools.shell.lines import read_line


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("[[ -f a && $x == y ]] && echo yes", ["[[ -f a && $x == y ]]", "echo yes"]),
        ("[[ a || ! b || c ]]; ls", ["[[ a || ! b || c ]]", "ls"]),
        ("if [[ a && b ]]; then ls; fi", ["if [[ a && b ]]", "then ls", "fi"]),
        ("[[ a ]] && ls && [[ b ]]", ["[[ a ]]", "ls", "[[ b ]]"]),
        ("echo [[ && ls ]]", ["echo [[", "ls ]]"]),
        ("X=1 [[ a && ls ]]", ["X=1 [[ a", "ls ]]"]),
    ],
)
def test_it_ends_at_its_brackets(line: str, commands: list[str]) -> None:
    read = read_line(line)
    assert read
    joined = list(join_conditions(read.commands))
    assert [" ".join(word.source for word in one.words) for one in joined] == commands
    assert all(one.span and line[slice(*one.span)] == text for one, text in zip(joined, commands, strict=True))
