"""Does the mask leave what git would give?"""

import pytest

from tools.git.permissions import to_umask


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("group", "g+rwx"),
        ("1", "g+rwx"),
        ("true", "g+rwx"),
        ("", "g+rwx"),
        ("2", "g+rwx,o+rx"),
        ("everybody", "g+rwx,o+rx"),
        ("0660", "007"),
        ("0664", "002"),
        ("0640", "027"),
        ("0", ""),
        ("false", ""),
        ("umask", ""),
        ("0060", ""),
        ("0660; touch x", ""),
    ],
)
def test_every_way_to_share(value: str, words: str) -> None:
    assert to_umask(value) == words
