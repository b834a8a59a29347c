"""Is a diff one that git could apply?"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tools.files.diff import compare_texts

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-", "\\"]), max_size=12)


def join(lines: list[str], end: str) -> str:
    return "\n".join(lines) + end * bool(lines)


TEXTS = st.builds(join, LINES, st.sampled_from(["", "\n"]))


@given(before=TEXTS, after=TEXTS)
@example(before="a\nb\n", after="z\n")
@example(before="a\n", after="a")
@example(before="a", after="a\nb\n")
@settings(max_examples=30, deadline=None)
def test_git_makes_the_new_text_of_the_old_one_with_it(before: str, after: str) -> None:
    change = compare_texts("notes", before, after)
    if before == after:
        assert change.diff == ""
        return
    with TemporaryDirectory() as folder:
        path = Path(folder, "notes")
        path.write_text(before)
        command = ["git", "apply", "--unidiff-zero", "--allow-empty", "-"]
        subprocess.run(command, cwd=folder, input=change.diff + "\n", text=True, check=True, capture_output=True)
        assert path.read_text() == after


def test_a_file_that_is_made_and_one_that_is_emptied() -> None:
    assert compare_texts("notes", "", "a\nb\n").diff.splitlines()[2] == "@@ -0,0 +1,2 @@"
    assert compare_texts("notes", "a\n", "").diff.splitlines()[2] == "@@ -1,1 +0,0 @@"
    assert compare_texts("notes", "1\n2\n3\n4\n", "1\n2\n3\nfour\n").diff.splitlines()[2] == "@@ -1,4 +1,4 @@"
