"""A few kills under load, and the proof that a lost answer would be seen. Many: `python -m tests.journeys.kill`."""

from pathlib import Path

import pytest

from tests.journeys.kill import Deed, Journey, KillSite, journey
from tests.sizes import scale

KILLS = scale(200)


@pytest.mark.heavy
def test_whatever_was_answered_survives_the_kill(tmp_path: Path) -> None:
    told = journey(tmp_path, kills=KILLS, seed=7)
    assert told["answered"] > 25 * KILLS
    # The two that worked, and the spare one where it had opened the state by then.
    assert told["stop"] in (2, 3), "those that left in peace say so"


@pytest.mark.heavy
def test_an_answer_that_left_no_trace_is_found(tmp_path: Path) -> None:
    place = KillSite(tmp_path / "work", tmp_path / "home")
    place.prepare()
    one = Journey(place, seed=1)
    try:
        first = one.working[0]
        while one.answers < 30 or not {deed.tool for deed in first.answered} >= {"fs_write_file", "menu_enter"}:
            one.pump()
        first.kill()
        one.ledger.follow()
        one.ledger.check(first, place.work)
        known = list(first.answered)
        for lost in ([Deed("think", {"content": "never"})], [known[0]] * 2, [Deed("menu_exit", {})] * 40):
            first.answered[:] = known + lost
            with pytest.raises(AssertionError, match="not on record"):
                one.ledger.check(first, place.work)
        first.answered[:] = known
        written = next(deed for deed in known if deed.tool == "fs_write_file")
        (place.work / written.arguments["path"]).unlink()
        with pytest.raises(FileNotFoundError):
            one.ledger.check(first, place.work)
        session = next(id for id, process in one.ledger.process_of.items() if process == str(first.process.pid))
        one.ledger.stands[session] = one.ledger.stands[session] | {"mode": "elsewhere"}
        with pytest.raises(AssertionError, match="elsewhere"):
            # The others go on writing, and stand elsewhere than where they were looked at.
            others = [server for server in (*one.working, one.spare) if server is not first]
            one.ledger.check_all({str(other.process.pid) for other in others})
    finally:
        one.stop()
