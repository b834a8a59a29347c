"""Is a run summed up from what is on record, the same way everywhere, and without what was thought?"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_server.state.engine.rows import Row
from mcp_server.state.summaries import MAX_LINE_CHARS, MAX_LINES, Note, build_summary
from tests.clients.served import PATIENCE

ROOT = Path(__file__).parents[2]
RUN = "p-1"
BASE = 1_790_000_000_000_000_000


def row(seq: int, kind: str, **fields: Any) -> Row:
    said = {"kind": kind, "at": BASE + seq * 10**9, "run": RUN, "session": "s-1", "principal": "me", **fields}
    return Row(seq, "", json.dumps(said), said)


def call(seq: int, tool: str, ending: str = "done", digest: str = "d", **more: Any) -> list[Row]:
    intent = row(seq, "intent", tool=tool, arguments_sha256=digest, mode="swe", stage="act")
    outcome = row(seq + 1, "outcome", intent=seq, ending=ending, tool=tool, shown_bytes=100, **more)
    return [intent] if ending == "unknown" else [intent, outcome]


def refusal(seq: int, tool: str, digest: str = "d", kind: str = "refusal") -> Row:
    return row(seq, kind, tool=tool, code="RULE_DENIED", reason="a rule says no", arguments_sha256=digest)


def moved(seq: int, before: dict[str, Any], after: dict[str, Any], reason: str = "why") -> Row:
    return row(seq, "transition", **{"from": before, "to": after, "reason": reason})


LIVED = [
    moved(1, {"mode": None, "run": RUN}, {"mode": "swe", "run": RUN}, "menu_enter swe"),
    *call(2, "Read"),
    refusal(4, "Write", "w"),
    moved(5, {"profile": "normal", "epoch": 0}, {"profile": "trusted", "epoch": 1}, "chosen"),
    *call(6, "Write", digest="w"),
    *call(8, "Edit", "problem", "e", code="STALE"),
    refusal(10, "fs_delete", "x"),
    refusal(11, "fs_delete", "x"),
    *call(12, "grep", "unknown", "g"),
    moved(13, {"mode": "swe", "run": RUN}, {"mode": "swe", "run": "p-2"}, "complete success"),
]
NOTES = [
    Note(2, "goal", "make the test pass"),
    Note(6, "file", "src/b.py"),
    Note(6, "file", "src/a.py"),
    Note(8, "file", "src/b.py"),
    Note(8, "plan", "first plan"),
    Note(9, "plan", "second plan"),
    Note(9, "decision", "keep the interface"),
    Note(9, "message", "nearly\ndone \ud800"),
    Note(12, "answer", "It passes now."),
    Note(12, "reasoning", "never to be seen"),
]


def lived() -> str:
    return build_summary(RUN, LIVED, NOTES).text


def test_every_section_says_what_is_on_record() -> None:
    found = build_summary(RUN, LIVED, NOTES)
    assert found.sections == {
        "goals": ("make the test pass",),
        "decisions": (
            "Went from ROOT to `swe`.",
            "The user chose profile trusted.",
            "Ended the run: complete success.",
            "keep the interface",
        ),
        "plan": ("second plan",),
        "issues": (
            "`fs_delete` was refused (RULE_DENIED): a rule says no (2 times)",
            "`Edit` failed (STALE)",
            "`grep` has no recorded outcome",
        ),
        "outputs": (
            "Changed `src/a.py`.",
            "Changed `src/b.py`.",
            "`Read` ran once and showed 100 characters.",
            "`Write` ran once and showed 100 characters.",
            "Messaged the user: nearly done \\ud800",
            "Final answer: It passes now.",
        ),
    }
    assert {**found.facts, "from": 0, "to": 0} == {
        **{"session": "s-1", "from": 0, "to": 0, "calls": 4, "done": 2, "failed": 1, "refused": 3},
        "rows": "1 to 13",
    }
    assert "never to be seen" not in found.text


def test_what_was_refused_and_done_later_is_no_open_issue() -> None:
    assert not any("`Write`" in line for line in build_summary(RUN, LIVED, NOTES).sections["issues"])


def test_up_to_a_call_nothing_later_counts() -> None:
    before = build_summary(RUN, LIVED, NOTES, upto=6)
    assert before.text == build_summary(RUN, LIVED[:7], [note for note in NOTES if note.seq <= 6]).text
    assert before.facts["done"] == 2, "the outcome of the last call that counts, counts"
    assert "second plan" not in before.text


def test_a_plan_nobody_told_is_where_the_run_stands() -> None:
    assert build_summary(RUN, LIVED, []).sections["plan"] == (
        "In mode `swe`, stage act; the last call, `grep`, has not ended yet.",
    )


def test_long_runs_stay_short() -> None:
    notes = [Note(1, "decision", f"{number} " + "x" * 1000) for number in range(100)]
    lines = build_summary(RUN, [], notes).sections["decisions"]
    assert len(lines) == MAX_LINES + 1
    assert lines[0] == "(80 earlier ones left out)" and lines[-1].startswith("99 ")
    assert max(map(len, lines)) == MAX_LINE_CHARS


def test_a_hostile_row_breaks_nothing() -> None:
    odd = row(1, "transition", **{"from": "x", "to": ["y"]})
    rows = [odd, row(2, "outcome", intent=99), row(3, "intent"), Row(4, "", "", {})]
    assert build_summary(RUN, rows, []).text.startswith("# Summary of run")


@pytest.mark.parametrize(("locale", "seed"), [("C", "0"), ("tr_TR.UTF-8", "7"), ("de_DE.ISO-8859-1", "99")])
def test_the_same_bytes_in_another_process_locale_and_time_zone(locale: str, seed: str) -> None:
    code = "import sys,hashlib; from tests.state.test_summaries import lived;"
    code += "sys.stdout.write(hashlib.sha256(lived().encode()).hexdigest())"
    environment = {"PATH": os.defpath, "LC_ALL": locale, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"}
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert said.stdout == hashlib.sha256(lived().encode()).hexdigest()
    assert lived() == lived()
