"""Which program is found behind one that starts it, and which options hide one?"""

import pytest

from tools.shell.program_arguments import ONE_UNKNOWN, SOME_UNKNOWN
from tools.shell.starters import READ_BY_XARGS, STARTERS, judge_settings
from tools.shell.verdicts import NeedsApproval

READ = f"{SOME_UNKNOWN}{READ_BY_XARGS}"


@pytest.mark.parametrize(
    ("line", "started"),
    [
        ("timeout -k 5 --signal=KILL 10 rm -r x", [("rm", "-r", "x")]),
        ("nice -n 5 rm", [("rm",)]),
        ("time -p rm", [("rm",)]),
        ("stdbuf -oL rm", [("rm",)]),
        ("env CI=1 TZ=x rm", [("rm",)]),
        ("xargs -0 -n 5 rm -r", [("rm", "-r", READ)]),
        ("xargs", [("echo", READ)]),
        ("xargs -I {} mv {} x{} y", [("mv", f"{ONE_UNKNOWN}{{}}", f"{ONE_UNKNOWN}x{{}}", "y")]),
        ("find . ( -name x -o -type f ) -exec rm {} ; -exec ls {} +", [("rm", "./{}"), ("ls", "./{}")]),
        ("find . -exec sh -c x{} ;", [("sh", "-c", f"{ONE_UNKNOWN}x{{}}")]),
        ("find -H src -name -delete -print0", []),
    ],
)
def test_it_starts(line: str, started: list[tuple[str, ...]]) -> None:
    name, *rest = line.split()
    assert STARTERS[name](tuple(rest)) == started


@pytest.mark.parametrize(
    "line",
    [
        *("timeout 5", "timeout -x 5 ls", "nice", "env", "env -S ls", "env -u x ls", "time -o x ls", "command -x ls"),
        *("xargs -a x ls", "xargs -o ls", "xargs --process-slot-var=x ls", "stdbuf --x ls"),
        *("find . -delete", "find . -exec ls", "find . -exec ;", "find . -exec ls +", "find . -fls x", "find . -name"),
        *("find . -name *x -delete", "find -files0-from x", "find . -newerXY x"),
    ],
)
def test_there_may_be_more_to_it(line: str) -> None:
    name, *rest = line.split()
    assert STARTERS[name](tuple(rest)) is None


def test_a_variable_for_a_program_is_checked() -> None:
    with pytest.raises(NeedsApproval, match="LD_PRELOAD"):
        judge_settings(("CI=1", "LD_PRELOAD=x", "ls"))
