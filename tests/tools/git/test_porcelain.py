"""Is what git says for programs read into values, any path in it, also where it was cut short?"""

import pytest

from tools.git.porcelain import FileChange, parse_changes, parse_rows, parse_status

ZERO, ONE = "0" * 40, "1" * 40


def raw(status: str, *paths: bytes, old: str = "100644", new: str = "100644") -> bytes:
    return b"\0".join([f":{old} {new} {ZERO} {ONE} {status}".encode(), *paths, b""])


def test_a_change_is_said_twice_and_read_once() -> None:
    (change,) = parse_changes(raw("M", b"caf\xe9\n") + b"3\t1\tcaf\xe9\n\0")
    assert change == FileChange("M", b"caf\xe9\n", None, 3, 1, "100644", "100644", ONE)


def test_a_renamed_file_was_somewhere_else() -> None:
    (change,) = parse_changes(raw("R90", b"old", b"new") + b"0\t2\t\0old\0new\0")
    assert (change.status, change.old_path, change.path, change.added, change.removed) == ("R", b"old", b"new", 0, 2)


def test_lines_of_what_is_no_text_are_not_counted() -> None:
    (change,) = parse_changes(raw("M", b"a.png") + b"-\t-\ta.png\0")
    assert (change.added, change.removed) == (None, None)


def test_a_file_in_conflict_is_one() -> None:
    (change,) = parse_changes(raw("U", b"a") + raw("M", b"a") + b"1\t1\ta\0")
    assert change.status == "U"


@pytest.mark.parametrize("cut", range(1, 60))
def test_what_was_cut_short_is_left_out(cut: int) -> None:
    whole = raw("M", b"first") + raw("R90", b"old", b"new")
    paths = [change.path for change in parse_changes(whole[:-cut])]
    assert paths == [b"first"][: len(paths)]


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("100644", "100755", "now executable"),
        ("000000", "100755", "executable"),
        ("100755", "100644", "no longer executable"),
        ("100755", "000000", ""),
        ("100644", "100644", ""),
        ("100644", "160000", ""),
    ],
)
def test_what_a_file_became_by_its_mode(old: str, new: str, note: str) -> None:
    (change,) = parse_changes(raw("M", b"a", old=old, new=new))
    assert change.mode_note == note
    assert change.is_submodule is (new == "160000")


def test_a_status_says_where_it_stands() -> None:
    lines = [
        f"# branch.oid {ONE}".encode(),
        b"# branch.head main",
        b"# branch.upstream origin/main",
        b"# branch.ab +2 -3",
        f"1 .M N... 100644 100644 100644 {ZERO} {ZERO} a file".encode(),
        f"2 R. N... 100644 100644 100644 {ZERO} {ZERO} R90 new".encode(),
        b"old",
        f"u UU N... 100644 100644 100644 100644 {ZERO} {ZERO} {ZERO} torn".encode(),
        f"1 .M SC.U 160000 160000 160000 {ZERO} {ZERO} sub".encode(),
        b"? caf\xe9",
        b"! ignored",
    ]
    found = parse_status(b"\0".join([*lines, b""]))
    assert (found.commit, found.branch, found.upstream, found.ahead, found.behind) == (ONE, "main", "origin/main", 2, 3)
    modified, renamed, torn, sub, unknown = found.entries
    assert (modified.path, modified.staged, modified.unstaged) == (b"a file", "", "M")
    assert (renamed.path, renamed.old_path, renamed.staged) == (b"new", b"old", "R")
    assert (torn.path, torn.conflict) == (b"torn", "UU")
    assert (sub.path, sub.submodule) == (b"sub", "CU")
    assert (unknown.path, unknown.untracked) == (b"caf\xe9", True)


def test_before_the_first_commit_and_on_no_branch_there_is_none() -> None:
    assert parse_status(b"# branch.oid (initial)\0").commit is None
    found = parse_status(b"# branch.head (detached)\0")
    assert (found.branch, found.upstream, found.ahead, found.entries) == (None, None, None, ())


def test_rows_are_whole_or_left_out() -> None:
    assert list(parse_rows(b"a\0b\0c\0d\0e\0", 2)) == [[b"a", b"b"], [b"c", b"d"]]
    assert list(parse_rows(b"a\0b\0c\0d", 2)) == [[b"a", b"b"]]
    assert list(parse_rows(b"", 2)) == []
