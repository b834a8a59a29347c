"""Which words of a program that only looks make it do more?"""

import pytest

from tools.shell.looking_programs import LOOKING


@pytest.mark.parametrize(
    ("program", "words", "looks"),
    [
        ("sqlite3", ["-readonly", "a.db", "select 1"], True),
        ("sqlite3", ["a.db", "SELECT * FROM credits"], True),
        ("sqlite3", ["a.db", "select 1; drop table t"], False),
        ("sqlite3", ["-readonly", "a.db", "select EDIT('a', 'b')"], False),
        ("sqlite3", ["-readonly", "a.db", "select 1\n.shell x"], False),
        ("sqlite3", ["-readonly", "a.db"], False),
        ("sqlite3", ["a.db", ".schema"], True),
        ("sqlite3", ["a.db", ".read x"], False),
        ("openssl", ["x509", "-in", "a.crt", "-noout"], True),
        ("openssl", ["x509", "-in", "a.crt", "-signkey", "b"], False),
        ("patch", ["--dry-run", "-p1"], True),
        ("patch", ["-p1"], False),
        ("patch", ["--", "--dry-run"], False),
        ("nm", ["a.out"], True),
        ("nm", ["@a"], False),
        ("kubectl", ["get", "pods"], True),
        ("kubectl", ["get", "secret"], False),
    ],
)
def test_what_looks(program: str, words: list[str], looks: bool) -> None:
    assert LOOKING[program](words) is looks


def test_no_program_that_looks_takes_any_option() -> None:
    for program, fits in LOOKING.items():
        for word in ("--exec=x", "--plugin=x", "--output=x"):
            assert not fits([word, "a"]), program
