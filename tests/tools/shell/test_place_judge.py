"""Does the judge of a line know where the line is, and what it has written?"""

import pytest

from tools.shell.place_judge import PlaceJudge, leads_out
from tools.shell.surroundings import Surroundings
from tools.shell.verdicts import NeedsApproval


def test_it_follows_the_line_below_the_workspace_and_no_further() -> None:
    judge = PlaceJudge()
    judge.judge_cd(("src",))
    judge.judge_cd(("deep",))
    assert (judge.folder, judge.left) == ("src/deep", "")
    judge.judge_cd(("../../..",))
    assert judge.is_outside
    with pytest.raises(NeedsApproval):
        judge.require_workspace("make", ())


def test_what_writes_a_temporary_file_again_makes_it_unknown() -> None:
    judge = PlaceJudge(written={"/tmp/a.py"})
    judge.judge_writing("/tmp/./a.py")
    assert judge.written == set()


def test_a_path_leads_out_if_it_climbs_above_the_workspace() -> None:
    assert leads_out("src", "../../x")
    assert not leads_out("src", "../x")


def test_the_workspace_is_known_by_its_whole_path() -> None:
    judge = PlaceJudge(
        around=Surroundings(lambda _: True, lambda path: "directory" if path == "src" else "", root="/work/shop")
    )
    judge.judge_cd(("/usr/share",))
    assert judge.is_elsewhere
    judge.judge_cd(("/work/shop/src",))
    assert (judge.folder, judge.left, judge.is_elsewhere) == ("src", "", False)
    for path in ("/work/shop/../x", "/work/shop/none", "/work/shopping", "/work"):
        judge.judge_cd((path,))
        assert judge.left, path
