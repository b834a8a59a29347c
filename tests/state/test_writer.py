"""Two real processes on one workspace: no update lost, one history, nothing acknowledged gone."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sizes import scale
from tests.state.kill import acknowledged, kills
from tests.state.neighbours import MODES
from tests.state.parts import Place

TURNS, KILLS = scale(4000), scale(200)


@pytest.mark.heavy
def test_two_processes_lose_no_update(place: Place) -> None:
    place.folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.state.neighbours", "turns", str(place.folder), str(TURNS)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout
        assert json.loads(child.stdout.readline()) == {"ready": True}
    for child in children:
        assert child.stdin
        child.stdin.write(b"\n")
        child.stdin.flush()
    said = [json.loads(line) for child in children for line in child.communicate(timeout=60)[0].splitlines()]
    assert [child.returncode for child in children] == [0, 0]
    # Every version was given exactly once, and the history goes through them without a gap.
    assert sorted(one["version"] for one in said) == list(range(1, 2 * TURNS + 1))
    with place.reader() as state:
        (session,) = (kept.session for kept in state.load_sessions())
        assert (session.version, session.steps) == (2 * TURNS, 2 * TURNS)
        moves = [row.fields for row in state.read_rows() if row.kind == "transition"]
        assert all(earlier["to"] == later["from"] for earlier, later in itertools.pairwise(moves))
        assert moves[-1]["to"]["mode"] == session.mode
        assert session.mode in MODES
        report = state.verify()
        assert report.ok, report.faults
        assert report.unanchored == 0


@pytest.mark.heavy
def test_kills_lose_nothing(tmp_path: Path) -> None:
    seen = kills(tmp_path, KILLS, seed=1)
    assert seen["kills"] == KILLS
    assert seen["rows"] > seen["acknowledged"] > 50 * KILLS


def test_a_tail_cut_right_after_a_kill_is_found(place: Place) -> None:
    """The last row that was acknowledged is as safe as any."""
    last = max(one["intent"] for one in acknowledged(place, 50) if "intent" in one)
    with place.reader() as state:
        assert state.verify().ok
    place.sql(f"DELETE FROM ledger WHERE seq >= {last}")
    with place.reader() as state:
        assert [row for row, what in state.verify().faults if "cut off" in what] == [last]
