"""Which file does a program that packs or splits others write?"""

import pytest

from tools.shell.archives import find_packed_file, find_split_prefix, find_zipped_files


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["czf", "a.tgz", "src"], "a.tgz"),
        (["-cf", "/tmp/a.tar", "--exclude", ".git", "-C", "src", "x"], "/tmp/a.tar"),
        (["xzf", "a.tgz", "-C", "/tmp/x"], ""),
        (["xzf", "a.tgz"], None),
        (["xzf", "a.tgz", "-C", "/tmp", "-C", "."], None),
        (["xzf", "a.tgz", "-C", "/tmp/../etc"], None),
        (["czf", "host:a.tgz", "src"], None),
        (["czf", "a.tgz", "-I", "sh", "src"], None),
        (["czf"], None),
        (["czf", "a.tgz", "-C"], None),
    ],
)
def test_tar_writes_the_archive_or_into_its_own_folder(words: list[str], written: str | None) -> None:
    assert find_packed_file(words) == written


def test_zip_may_add_an_ending() -> None:
    assert find_zipped_files(["-r", "a", "src", "-x", "*.pyc"]) == ("a", "a.zip")
    for words in (["-T", "a", "src"], ["-rm", "a", "src"], ["-x", "a", "b"], ["a"], ["a", "@"]):
        assert find_zipped_files(words) is None


def test_split_makes_files_of_one_beginning() -> None:
    assert find_split_prefix(["-l", "10", "a.csv", "out/part_"]) == "out/part_"
    assert find_split_prefix(["a.csv"]) == "x"
    for words in (["a", ".mcp"], ["a", "../x"], ["--filter=sh", "a"], ["-l", "sh", "a"], ["a", "b", "c"]):
        assert find_split_prefix(words) is None
