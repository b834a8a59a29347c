"""Whatever is done to a ledger behind menugate's back is found, and the row is named."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mcp_server.state.engine.chain import compute_row_hash
from tests.state.parts import Hands, Place, intended, intent
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.anyio
TABLE: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables/state_tampering.yaml").read_text())
LAST = 41


async def ledger_of(place: Place, hands: Hands, *runs: int) -> None:
    """One process after the other, each leaving so many calls, and a checkpoint at its end."""
    for calls in runs:
        store = await hands.open(place)
        for _ in range(calls):
            await intended(store, intent(about=str(place.clock.now)))
        await hands.close()


def recompute(place: Place, first: int, last: int) -> None:
    connection = sqlite3.connect(place.file)
    (previous,) = connection.execute("SELECT hash FROM ledger WHERE seq = ?", (first - 1,)).fetchone()
    span = connection.execute("SELECT seq, body FROM ledger WHERE seq BETWEEN ? AND ? ORDER BY seq", (first, last))
    for seq, body in span.fetchall():
        previous = compute_row_hash(previous, seq, body)
        connection.execute("UPDATE ledger SET hash = ? WHERE seq = ?", (previous, seq))
    connection.commit()
    connection.close()


def spoil(place: Place, other: Place, deed: dict[str, str]) -> None:
    (what, which), *_ = deed.items()
    mine, theirs = (
        (place.anchor, other.anchor) if which == "anchor" else tuple(p.secrets / "ledger.key" for p in (place, other))
    )
    if what == "remove":
        mine.unlink()
    elif what == "foreign":
        mine.write_bytes(theirs.read_bytes())
    else:
        mine.write_bytes(mine.read_bytes().replace(b'"seq":41', b'"seq":40'))


@pytest.mark.parametrize("case", TABLE, ids=[case["what"] for case in TABLE])
async def test_tampering_is_found(tmp_path: Path, hands: Hands, case: dict[str, Any]) -> None:
    place, other = Place(tmp_path / "here"), Place(tmp_path / "there")
    await ledger_of(place, hands, 19, 18)
    # The other workspace shares the key where its anchor is to be put here, and only then.
    if case.get("file") == {"foreign": "anchor"}:
        other.secrets.parent.mkdir(parents=True)
        other.secrets.symlink_to(place.secrets)
    if "foreign" in case.get("file", {}):
        await ledger_of(other, hands, 10)
    place.sql(*case.get("sql", []))
    if first := case.get("recompute_from"):
        recompute(place, first, LAST)
    if only := case.get("recompute_only"):
        recompute(place, only, only)
    if "file" in case:
        spoil(place, other, case["file"])
    with place.reader() as state:
        report = state.verify()
    expected = [(LAST if one["row"] == "last" else one["row"], one["says"]) for one in case["finds"]]
    for row, says in expected:
        assert any(seq == row and says in what for seq, what in report.faults), (row, says, report.faults)
    assert report.ok is (not expected)


async def test_an_untouched_ledger_names_how_far_it_is_vouched_for(place: Place, hands: Hands) -> None:
    await ledger_of(place, hands, 19, 18)
    with place.reader() as state:
        report = state.verify()
    assert (report.rows, report.unanchored, report.checkpoints, report.faults) == (LAST, 0, 2, ())


async def test_a_running_server_can_be_verified(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    for _ in range(30):
        await intended(store, intent())
        with place.reader() as state:
            report = state.verify()
            assert report.ok, report.faults
            assert report.unanchored <= 1


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DELETE FROM ledger WHERE seq > 20", "missing from its end"),
        ("UPDATE ledger SET hash = 'x' WHERE seq = 21", "not the one its anchor names"),
        ("DELETE FROM checkpoints", "checkpoints are missing"),
    ],
)
async def test_a_start_does_not_wipe_the_traces_away(place: Place, hands: Hands, statement: str, says: str) -> None:
    """The next start writes a new anchor; what the old one said stays in the ledger, and the person is told."""
    await ledger_of(place, hands, 19)
    place.sql(statement)
    store = await hands.open(place)
    condition = await store.wait_until_ready()
    assert says in condition.alarms[0]
    await hands.close()
    await ledger_of(place, hands, 3)
    with place.reader() as state:
        (alarm,) = (row for row in state.read_rows() if row.kind == "alarm")
        assert '"seq":21' in alarm.fields["evidence"]
        assert any(seq == alarm.seq and says in what for seq, what in state.verify().faults)
        assert "audit verify" in state.load_messages()[0].text


async def test_a_removed_anchor_is_an_alarm_at_the_next_start(place: Place, hands: Hands) -> None:
    await ledger_of(place, hands, 5)
    place.anchor.unlink()
    assert "missing" in (await (await hands.open(place)).wait_until_ready()).alarms[0]


async def test_rows_a_killed_process_did_not_anchor_are_counted_and_anchored_by_the_next(
    place: Place, hands: Hands
) -> None:
    """As between commit and anchor: the anchor is of one commit earlier, the file is not."""
    store = await hands.open(place)
    await intended(store, intent())
    await intended(store, intent())
    with place.reader() as state:
        assert state.verify().unanchored <= 1
    earlier = place.anchor.read_bytes()
    await intended(store, intent())
    await intended(store, intent())
    await hands.close()
    connection = sqlite3.connect(place.file)
    connection.execute("DELETE FROM checkpoints")
    connection.commit()
    connection.close()
    place.anchor.write_bytes(earlier)
    with place.reader() as state:
        report = state.verify()
        assert report.ok, report.faults
        assert report.unanchored in (3, 4)
    assert (await (await hands.open(place)).wait_until_ready()).alarms == ()
    with place.reader() as state:
        assert state.verify().unanchored == 0


async def test_the_next_start_says_how_many_rows_it_found_behind_the_last(place: Place, hands: Hands) -> None:
    """Whoever writes the file can put a row behind the last; that nobody vouched for it stays on record."""
    await ledger_of(place, hands, 3)
    with place.reader() as reader:
        last = reader.get_head()
    place.sql(f"INSERT INTO ledger (seq, body, hash) SELECT {last + 1}, body, '' FROM ledger WHERE seq = {last}")
    recompute(place, last + 1, last + 1)
    await ledger_of(place, hands, 1, 1)
    with place.reader() as reader:
        starts = [row.fields.get("unanchored") for row in reader.read_rows() if row.kind == "start"]
    assert starts == [None, 1, None]
