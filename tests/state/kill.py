"""Does everything that was acknowledged survive `kill -9`? `python -m tests.state.kill --kills 500`

Two processes work on one workspace; both are killed after a pseudo-random number of acknowledgements; then every row
they acknowledged has to be there, the chain has to hold, and what is true now has to be what the ledger says last.
"""

import argparse
import json
import random
import selectors
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp_server.state.engine.rows import LedgerFilter
from mcp_server.state.reader import Reader
from tests.state.parts import Place, intent

NAMES = ("a", "b")


def begin(place: Place, name: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.state.neighbours", "load", str(place.folder), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])


def acknowledged(place: Place, enough: int) -> list[dict[str, Any]]:
    """What two processes said before they were killed in the middle of it."""
    children = [begin(place, name) for name in NAMES]
    heard = dict.fromkeys(children, b"")
    with selectors.DefaultSelector() as waiting:
        for child in children:
            assert child.stdout
            waiting.register(child.stdout, selectors.EVENT_READ, child)
        while sum(text.count(b"\n") for text in heard.values()) < enough or not all(heard.values()):
            for key, _ in waiting.select(30):
                chunk = key.fileobj.read1()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # the pipe registered above
                assert chunk, "a process ended by itself"
                heard[key.data] += chunk
    for child in children:
        child.kill()
    for child in children:
        heard[child] += child.communicate()[0]
    # A line without its end was not said.
    return [json.loads(line) for text in heard.values() for line in text.split(b"\n")[:-1]]


def check(state: Reader, said: list[dict[str, Any]], before: int) -> int:
    report = state.verify()
    assert report.ok, report.faults
    anchored = state.get_head() - report.unanchored
    assert all(one["intent"] <= anchored for one in said if "intent" in one), "what was acknowledged cannot be cut"
    rows = {row.seq: row for row in state.read_rows(after=before)}
    for one in said:
        if "intent" in one:
            row = rows[one["intent"]]
            assert row.fields["arguments_sha256"] == intent(about=one["about"]).arguments_sha256, (one, row)
    sessions = {kept.session.id: kept.session for kept in state.load_sessions()}
    for id in {one["moved"] for one in said if "moved" in one}:
        assert sessions[id].version >= max(one["version"] for one in said if one.get("moved") == id)
        last = next(iter(state.read_rows(LedgerFilter(session=id, kinds=("transition",), tail=1))), None)
        place = sessions[id]
        # A move to where one already stands is none, so a session that only did that has no transition.
        stands = {name: getattr(place, name) for name in ("mode", "stage", "run", "pinned", "phase")}
        start = {"mode": None, "stage": "act", "run": "", "pinned": False, "phase": None}
        assert stands == (last.fields["to"] if last else start)
    chosen = [row for row in rows.values() if row.kind == "transition" and "work_mode" in row.fields["to"]]
    if chosen:
        choice = state.load_choices()["me"]
        assert {**choice.axes, "epoch": choice.epoch} == chosen[-1].fields["to"]
        assert choice.epoch >= max((one["chose"] for one in said if "chose" in one), default=0)
    # Outcomes are written behind: some calls have none, and every one of those is told.
    concluded = {row.fields["intent"] for row in rows.values() if row.kind == "outcome"}
    assert {seq for seq, row in rows.items() if row.kind == "intent"} - concluded <= set(state.find_unfinished_calls())
    return report.unanchored


def kills(folder: Path, count: int, seed: int) -> dict[str, int]:
    place, chance = Place(folder), random.Random(seed)
    before, seen = 0, {"kills": 0, "acknowledged": 0, "rows": 0, "unanchored": 0}
    for _ in range(count):
        said = acknowledged(place, chance.randrange(1, 250))
        with place.reader() as state:
            seen["unanchored"] += check(state, said, before) > 0
            before = seen["rows"] = state.get_head()
        seen["kills"] += 1
        seen["acknowledged"] += len(said)
    return seen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(kills(Path(folder), asked.kills, asked.seed))
