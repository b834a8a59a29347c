"""Is anybody asked about a line whose only program does not exist?"""

from pathlib import Path

import pytest

from tests.clients.pipe import pipe

MISSING = ("nosuchprogram", "nosuchprogram --flag a.txt", "./nosuch.sh", "deep/nosuch")
ASKED = ("./fine.sh", "rm a.txt", "eval x", "nosuchprogram && ls", "x=$(nosuchprogram) true", "/nosuch/program")


@pytest.mark.parametrize("how", [{}, {"exec_dir": "deep"}], ids=["workspace", "deep"])
def test_a_program_that_does_not_exist_is_refused_before_anybody_is_asked(
    workspace: Path, home: Path, how: dict[str, str]
) -> None:
    (workspace / "deep").mkdir()
    for folder in (workspace, workspace / "deep"):
        (folder / "fine.sh").write_text("true\n")
    with pipe(workspace, home, "--profile", "normal", "--mode", "swe") as one:
        one.hello()
        for line in MISSING:
            answer = one.call("bash", command=line, **how)["content"][0]["text"]
            assert answer.startswith("Error NOT_FOUND"), (line, answer)
        for line in ASKED:
            answer = one.call("bash", command=line, **how)["content"][0]["text"]
            assert answer.startswith("Error APPROVAL_REQUIRED"), (line, answer)
