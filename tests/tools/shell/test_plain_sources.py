"""Is what a command prints written out in the line, or in files of the workspace?"""

import pytest

from tools.shell.lines import read_line
from tools.shell.plain_sources import is_plain_source


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("echo 'a b'", True),
        ("printf '%s' a", True),
        ("cat a.py sub/b.py", True),
        ("head -n 5 a.py", True),
        ("cat <<< a", True),
        ("echo $x", False),
        ("echo *", False),
        ("printf -v x a", False),
        ("cat", False),
        ("cat ../a.py", False),
        ("cat ~/a.py", False),
        ("cat -- a.py", False),
        ("git show HEAD:a.py", False),
    ],
)
def test_a_plain_source_shows_what_it_prints(line: str, plain: bool) -> None:
    read = read_line(line)
    assert read
    assert is_plain_source(read.commands[0]) is plain
