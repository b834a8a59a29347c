"""Is the ledger unchanged? Checks every row against the chain, and the chain against anchor and checkpoints."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from mcp_server.state.engine.chain import (
    GENESIS,
    SLOT,
    Anchor,
    Checkpoint,
    LedgerKey,
    compute_row_hash,
    format_canonical_json,
    is_valid_signature,
)
from mcp_server.state.engine.rows import Row, RowKind
from mcp_server.state.engine.transaction import View
from mcp_server.state.processes import has_ended_or_changed

ROWS_PER_READ = 5000
ROWS_BETWEEN_REPORTS = 1000
MAX_LIVES = 1000
"""How many of the newest starts and stops of processes to look at."""
SEAL = "seal"
"""The field for a row's own MAC, beside the chain."""
SEGMENT_FIELDS = ("reason", "state", "rows", "head", "tampered")


class VerifyReport(Struct, frozen=True):
    rows: int
    unanchored: int
    """Rows committed after the anchor was last written: a few right after a kill, none after the next start."""
    faults: tuple[tuple[int, str], ...]
    """What is wrong, each with its row, or 0 if it is not about a single row."""
    checkpoints: int = 0
    notes: tuple[str, ...] = ()
    """For the user: what the check says about rows that another key sealed."""

    @property
    def ok(self) -> bool:
        return not self.faults


@dataclass(slots=True)
class _ChainCheck:
    """How far the chain was followed, and the faults on the way."""

    expected: dict[int, list[tuple[str, str]]]
    """For a row: the hashes it should have, each with what says so."""
    seq: int = 0
    hash: str = GENESIS
    rows: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def check_row(self, seq: int, body: str, hash: str) -> None:
        self.rows += 1
        if seq != self.seq + 1:
            self.faults.append((self.seq + 1, _describe_missing_rows(self.seq + 1, seq - 1)))
        elif compute_row_hash(self.hash, seq, body) != hash:
            self.faults.append((seq, "the row does not match the chain: it or the one before it was changed"))
        for expected_hash, source in self.expected.get(seq, ()):
            if expected_hash != hash:
                self.faults.append((seq, f"the row is not the one that {source} names: the chain was recomputed"))
        if '"kind":"alarm"' in body:
            self.faults.append((seq, f"recorded at startup: {read_body(body).get('reason')}"))
        # Continue from the stored hash, so that one changed row is one fault and not ten thousand.
        self.seq, self.hash = seq, hash


def _describe_missing_rows(first: int, last: int) -> str:
    return "the row is missing" if first == last else f"rows {first} to {last} are missing"


def read_body(body: object) -> dict[str, Any]:
    """Parse a row's fields; empty if the text is not one of ours."""
    try:
        fields = json.loads(body) if isinstance(body, str) else None
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON's keys are strings


def row_from_record(record: Mapping[str, Any]) -> Row:
    return Row(record["seq"], record["hash"], record["body"], read_body(record["body"]))


def get_last_seq(view: View) -> int:
    """Return the newest row's number; 0 if there is none."""
    return (view.fetch_one("SELECT max(seq) AS seq FROM ledger") or {}).get("seq") or 0


def verify_ledger(
    view: View, anchor_path: Path, report_progress: Callable[[int, int], None] | None = None, foreign: bool = False
) -> VerifyReport:
    """Read the whole ledger once. Safe beside running writers, because the anchor is read first.

    `report_progress` gets the number of rows read and the last row now and then. For a `foreign` ledger we check the
    chain and the signatures, but not who signed.
    """
    last = get_last_seq(view)
    faults: list[tuple[int, str]] = []
    anchor = None if foreign else _read_anchor(anchor_path, view.key, faults)
    checkpoints = [Checkpoint(**row) for row in view.fetch_all("SELECT * FROM checkpoints ORDER BY number")]
    expected: dict[int, list[tuple[str, str]]] = {}
    if anchor and anchor.seq:
        expected.setdefault(anchor.seq, []).append((anchor.hash, "the anchor"))
    for checkpoint in checkpoints:
        expected.setdefault(checkpoint.seq, []).append((checkpoint.hash, f"checkpoint {checkpoint.number}"))
    chain = _ChainCheck(expected)
    for seq, body, hash in _read_rows(view):
        if isinstance(body, str) and isinstance(hash, str):
            chain.check_row(seq, body, hash)
        else:
            faults.append((seq, "the row is damaged"))
            chain.seq, chain.hash = seq, str(hash)
        if report_progress and seq % ROWS_BETWEEN_REPORTS == 0:
            report_progress(seq, last)
    faults += chain.faults
    last_vouched = max((anchor.seq if anchor else 0, *(checkpoint.seq for checkpoint in checkpoints)), default=0)
    if last_vouched > chain.seq:
        faults.append(
            (chain.seq + 1, f"{_describe_missing_rows(chain.seq + 1, last_vouched)}: the end of the ledger was cut off")
        )
    faults += _find_checkpoint_faults(checkpoints, anchor, None if foreign else view.key)
    unanchored = max(0, chain.seq - anchor.seq) if anchor else chain.rows
    notes = (FOREIGN_NOTE,) if foreign else tuple(_describe_takeover(view, anchor_path.parent, faults))
    return VerifyReport(chain.rows, 0 if foreign else unanchored, tuple(sorted(faults)), len(checkpoints), notes)


FOREIGN_NOTE = (
    "It was written with a key that this account does not have, so its chain and signatures were checked, but not "
    "who signed it."
)


def _describe_takeover(view: View, folder: Path, faults: list[tuple[int, str]]) -> Iterator[str]:
    """Check the ledger that came before this one, if the first row names one."""
    segment = find_taken_over_state(view)
    if segment is None:
        return
    if not segment.get("tampered"):
        intro = f"It begins with a reference to {segment['rows']:,} rows of another account in `{segment['state']}`"
        yield from (
            intro + finding for finding in _check_referenced_rows(folder / str(segment["state"]), segment, faults)
        )
    elif is_adopted(view):
        yield f"Row 1: {segment['reason']}. A posture has been chosen at a terminal since then."
    else:
        way_out = "to continue from here, choose a posture at a terminal, such as `menugate profile normal`"
        faults.append((1, f"{segment['reason']}; {way_out}"))


def _check_referenced_rows(path: Path, segment: Mapping[str, Any], faults: list[tuple[int, str]]) -> Iterator[str]:
    """Are those rows still there, in an intact chain? Without their key we cannot check more."""
    import sqlite3

    from mcp_server.state.peek import open_read_only

    previous, number = GENESIS, 0
    try:
        with open_read_only(path) as connection:
            rows = connection.execute(
                "SELECT seq, body, hash FROM ledger WHERE seq <= ? ORDER BY seq", (segment["rows"],)
            )
            for seq, body, hash in rows:
                number += 1
                if seq != number or compute_row_hash(previous, number, str(body)) != hash:
                    faults.append((1, f"row {number} of the other account's ledger does not fit its chain"))
                    return
                previous = hash
    except (OSError, sqlite3.Error):
        yield "; they cannot be read now, so they were not checked."
        return
    is_whole = number == segment["rows"] and previous == segment["head"]
    yield "; their chain is intact, but who wrote them cannot be checked." if is_whole else "; they are gone."


def find_taken_over_state(view: View) -> dict[str, Any] | None:
    """Return what the first row says of an earlier state; None if nothing, or if our key did not seal the row."""
    row = view.fetch_one("SELECT body FROM ledger WHERE seq = 1 AND kind = :kind", kind=RowKind.SEGMENT)
    if row is None or view.key is None:
        return None
    body = read_body(row["body"])
    fields = {name: body[name] for name in SEGMENT_FIELDS if name in body}
    return fields if view.key.has_sealed(format_segment_seal(fields), str(body.get(SEAL))) else None


def is_adopted(view: View) -> bool:
    """Has the user chosen a posture at a terminal since this ledger began?"""
    row = view.fetch_one("SELECT body FROM ledger WHERE kind = :kind ORDER BY seq LIMIT 1", kind=RowKind.ADOPTION)
    seal = str(read_body(row["body"]).get(SEAL)) if row else ""
    return view.key is not None and view.key.has_sealed(format_adoption_seal(view), seal)


def format_segment_seal(fields: Mapping[str, Any]) -> str:
    return format_canonical_json({"segment": format_canonical_json(fields)})


def format_adoption_seal(view: View) -> str:
    row = view.fetch_one("SELECT hash FROM ledger WHERE seq = 1") or {}
    return format_canonical_json({"adopted": str(row.get("hash"))})


def _read_rows(view: View) -> Iterator[tuple[int, Any, Any]]:
    cursor = view.link.cursor.execute("SELECT seq, body, hash FROM ledger ORDER BY seq")
    while chunk := cursor.fetchmany(ROWS_PER_READ):
        yield from chunk


def _read_anchor(path: Path, key: LedgerKey | None, faults: list[tuple[int, str]]) -> Anchor | None:
    if key is None:
        faults.append((0, "the key is missing, so neither the anchor nor the checkpoints can be checked"))
        return None
    # Retry, because a writer may be in the middle of writing the anchor.
    for _ in range(3):
        try:
            text = path.read_bytes()
        except OSError:
            faults.append((0, "the anchor is missing"))
            return None
        if (anchor := Anchor.parse_line(text[:SLOT], key)) and len(text) == SLOT:
            return anchor
    faults.append((0, "the anchor was not written with this machine's key, or was changed"))
    return None


def _find_checkpoint_faults(
    checkpoints: list[Checkpoint], anchor: Anchor | None, key: LedgerKey | None
) -> Iterator[tuple[int, str]]:
    previous: Checkpoint | None = None
    for checkpoint in checkpoints:
        number = previous.number + 1 if previous else 1
        if checkpoint.number != number:
            yield checkpoint.seq, f"checkpoint {number} is missing before this row"
        elif key and checkpoint.key != key.public_key:
            yield checkpoint.seq, f"checkpoint {checkpoint.number} was signed with a key other than this machine's"
        elif not is_valid_signature(checkpoint.format_statement(previous), checkpoint.signature, checkpoint.key):
            yield checkpoint.seq, f"the signature of checkpoint {checkpoint.number} is invalid"
        previous = checkpoint
    last = previous.number if previous else 0
    if anchor and anchor.checkpoints > last:
        yield (previous.seq if previous else 0), f"checkpoint {last + 1} is missing after this row"


def describe_anchor_misfit(view: View, anchor: bytes | None, key: LedgerKey) -> str:
    """Describe what the ledger lacks of what its anchor claims; empty if nothing. A start checks this before it
    rewrites the anchor."""
    if anchor is None:
        return "the ledger's anchor is missing"
    claimed = Anchor.parse_line(anchor[:SLOT], key)
    if claimed is None:
        return "the ledger's anchor was not written with this machine's key"
    if claimed.seq > (last := get_last_seq(view)):
        return f"rows {last + 1} to {claimed.seq} of the ledger are missing from its end"
    row = view.fetch_one("SELECT hash FROM ledger WHERE seq = :seq", seq=claimed.seq)
    if claimed.seq and (row is None or row["hash"] != claimed.hash):
        return f"row {claimed.seq} of the ledger is not the one its anchor names"
    count = view.fetch_one("SELECT max(number) AS number FROM checkpoints") or {}
    return "signed checkpoints are missing" if claimed.checkpoints > (count["number"] or 0) else ""


def count_unanchored_rows(view: View, anchor: bytes | None, key: LedgerKey) -> int:
    """Count the rows that the anchor does not cover yet."""
    claimed = Anchor.parse_line(anchor[:SLOT], key) if anchor else None
    return max(0, get_last_seq(view) - claimed.seq) if claimed else 0


def check_anchor(view: View, path: Path) -> tuple[int, str]:
    """Count the rows that the anchor does not cover yet, and describe what does not match it."""
    faults: list[tuple[int, str]] = []
    anchor = _read_anchor(path, view.key, faults)
    if anchor is None or view.key is None:
        return 0, faults[0][1]
    return max(0, get_last_seq(view) - anchor.seq), describe_anchor_misfit(view, anchor.format_line(view.key), view.key)


def find_unended_starts(view: View) -> list[Row]:
    """Find the start rows of processes that have not recorded their end, oldest first."""
    rows = view.fetch_all(
        "SELECT seq, kind, body, hash FROM ledger WHERE kind IN (:start, :stop) ORDER BY seq DESC LIMIT :most",
        start=RowKind.START,
        stop=RowKind.STOP,
        most=MAX_LIVES,
    )
    ended = {read_body(row["body"]).get("process") for row in rows if row["kind"] == RowKind.STOP}
    starts = [row_from_record(row) for row in reversed(rows) if row["kind"] == RowKind.START]
    return [start for start in starts if start.fields.get("process") not in ended]


def find_unfinished_calls(view: View, among: int) -> list[int]:
    """Find calls without an outcome among the last rows, whose process is gone and cannot write one any more."""
    concluded: set[object] = set()
    stopped: set[object] = set()
    unfinished: list[int] = []
    # Newest first: by the time we reach a call, we have seen its outcome.
    for seq, body in view.fetch_each("SELECT seq, body FROM ledger ORDER BY seq DESC LIMIT :among", among=among):
        fields = read_body(body)
        process = fields.get("process")
        match fields.get("kind"):
            case RowKind.OUTCOME:
                concluded.add(fields.get("intent"))
            case RowKind.STOP:
                stopped.add(process)
            case RowKind.INTENT if seq not in concluded and (
                process in stopped or not is_process_running(str(process))
            ):
                unfinished.append(seq)
            case _:
                pass
    return sorted(unfinished)


def is_process_running(process: str) -> bool:
    """Does the process still run? Its name begins with its number, and ends with its start time if that is known."""
    name, _, born = process.partition("@")
    number = name.partition("-")[0]
    if not number.isascii() or not number.isdigit() or not 0 < int(number) < 2**31:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not has_ended_or_changed(int(number), born.replace("_", " "))
