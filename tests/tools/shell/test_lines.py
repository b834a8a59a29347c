"""What is handed on of a line of bash, and what is not understood?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.shell import ShellLine, WordRole
from tools.shell.here_documents import DEEPEST
from tools.shell.lines import LONGEST, read_line


def words(line: str) -> list[tuple[str, str, WordRole, bool]]:
    read = read_line(line)
    assert read is not None
    return [(word.text, word.source, word.role, word.known) for one in read.commands for word in one.words]


def test_each_word_says_what_it_is_and_whether_it_is_known() -> None:
    word, target = WordRole.WORD, WordRole.TARGET
    assert words("""A=b 2>/dev/null g"i"t 'a b' "$x" $(ls)""") == [
        ("A=b", "A=b", WordRole.ASSIGNMENT, True),
        ("/dev/null", "2>/dev/null", target, True),
        ("git", 'g"i"t', word, True),
        ("a b", "'a b'", word, True),
        ("$x", '"$x"', word, False),
        ("$()", "$(ls)", word, False),
    ]
    assert [one[2] for one in words("! ls")] == [WordRole.KEYWORD, word]


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        ("ls | wc && pwd || true; ls 2>&1\npwd # x", True),
        ("A=b ls", True),
        ("A=b", False),
        ("ls &", False),
        ("(ls)", False),
        ("{ ls; }", False),
        ("! ls", False),
        ("ls |& wc", False),
        ("if ls; then ls; fi", False),
        ("f() { ls; }", False),
        ("[[ -f x ]]", False),
        ("export A=b", False),
        ("cat <<EOF\nx\nEOF", False),
        ("cat <<< x", False),
    ],
)
def test_only_commands_that_are_joined_are_a_list(line: str, listed: bool) -> None:
    read = read_line(line)
    assert read is not None
    assert read.listed is listed


def test_what_joins_two_commands_is_told() -> None:
    read = read_line("a | b && c\nd; e")
    assert read is not None
    assert [one.joined for one in read.commands] == ["|", "&&", "\n", ";", ""]


def nested(depth: int) -> str:
    return "$(" * depth + "ls" + ")" * depth


@pytest.mark.parametrize(
    ("line", "understood"),
    [
        ("a" * LONGEST, True),
        ("a" * (LONGEST + 1), False),
        (nested(DEEPEST), True),
        (nested(DEEPEST + 1), False),
        ("ls && " * 2_000 + "ls", True),
        ("-a " * 2_500, True),
        ("cat <<EOF\n" + "it's; (\n" * 6_000 + "EOF", True),
        # Whoever writes such a line wants the parser to be busy: it is stopped after so many steps.
        ("a|" * 30_000, False),
        ("a=(b " * 13_000, False),
        ("${a#" * 16_000, False),
        ("case x in a|b|" * 4_000, False),
    ],
    ids=lambda value: f"{value[:12]!r} {len(value)}" if isinstance(value, str) else None,
)
def test_a_line_may_be_long_but_not_without_end(line: str, understood: bool) -> None:
    assert (read_line(line) is not None) is understood


@given(st.text(alphabet="git push'\"$(){}\\;&|\n`<>#a=*[] EOF!", max_size=60) | st.text(max_size=40))
def test_any_text_is_a_line_or_none(text: str) -> None:
    assert read_line(text) is None or isinstance(read_line(text), ShellLine)


@pytest.mark.parametrize("sign", ["\u202e", "\ufeff", "𐍈", "\U000e0001", "\U0010ffff"])
@pytest.mark.parametrize("line", ["<<{}{{EOF;}}", "cat <<{}EOF", "{}=1 ls", "ls $({})", "echo {}{{a,b}}", "'{}'"])
def test_no_character_ends_the_process(line: str, sign: str) -> None:
    """The grammar looked characters up in a table of 256."""
    for text in (line.format(sign), line.format(sign * 40)):
        read = read_line(text)
        assert read is None or sign in "".join(word.source for word in read.commands[0].words)
