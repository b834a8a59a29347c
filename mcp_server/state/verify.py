"""Is the ledger unchanged? Checks every row against the chain, and the chain against its anchor and signed
checkpoints."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from mcp_server.state.engine.rows import RowKind
from mcp_server.state.engine.transaction import View

CHUNK = 5000
TOLD_EVERY = 1000


SEAL = "seal"
"""The field in which a row carries a MAC of its own."""
TAKEN_OVER = ("reason", "state", "rows", "head", "tampered")


@dataclass(frozen=True, slots=True)
class VerifyReport:
    rows: int
    unanchored: int
    """Rows committed after the anchor was last written: a few right after a kill, none after the next start."""
    faults: tuple[tuple[int, str], ...]
    """What is wrong, by row; 0 if it does not concern a single row."""
    checkpoints: int = 0
    notes: tuple[str, ...] = ()
    """What to know about rows that another key sealed, in words for the person."""

    @property
    def ok(self) -> bool:
        return not self.faults


@dataclass(slots=True)
class _Walk:
    """How far the chain was followed, and what was found on the way."""

    expected: dict[int, list[tuple[str, str]]]
    """row -> hashes that something vouched for, and what did."""
    seq: int = 0
    hash: str = GENESIS
    rows: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def check_row(self, seq: int, body: str, hash: str) -> None:
        self.rows += 1
        if seq != self.seq + 1:
            self.faults.append((self.seq + 1, _describe_missing_rows(self.seq + 1, seq - 1)))
        elif compute_row_hash(self.hash, seq, body) != hash:
            self.faults.append((seq, "the row does not fit the chain: it or the one before it was changed"))
        for vouched, by in self.expected.get(seq, ()):
            if vouched != hash:
                self.faults.append((seq, f"the row is not the one that {by} names: the chain was computed anew"))
        if '"kind":"alarm"' in body:
            self.faults.append((seq, f"recorded at a start: {read_body(body).get('reason')}"))
        # Continue from the hash as stored, so that one changed row is one fault and not ten thousand.
        self.seq, self.hash = seq, hash


def _describe_missing_rows(first: int, last: int) -> str:
    return "the row is missing" if first == last else f"rows {first} to {last} are missing"


def read_body(body: object) -> dict[str, Any]:
    """Parse a row's fields; none if the text is not one of ours."""
    try:
        found = json.loads(body) if isinstance(body, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON's keys are strings


def verify_ledger(
    view: View, anchor_path: Path, told: Callable[[int, int], None] | None = None, foreign: bool = False
) -> VerifyReport:
    """Read everything once. Safe beside running writers: the anchor is read first, so the file is never behind it.

    `told` is called from time to time with the number of rows read and the last row. For a `foreign` ledger the chain
    and the signatures are checked, but not who signed.
    """
    last = (view.fetch_one("SELECT max(seq) AS seq FROM ledger") or {}).get("seq") or 0
    faults: list[tuple[int, str]] = []
    anchor = None if foreign else _read_anchor(anchor_path, view.key, faults)
    checkpoints = [Checkpoint(**row) for row in view.fetch_all("SELECT * FROM checkpoints ORDER BY number")]
    expected: dict[int, list[tuple[str, str]]] = {}
    if anchor and anchor.seq:
        expected.setdefault(anchor.seq, []).append((anchor.hash, "the anchor"))
    for one in checkpoints:
        expected.setdefault(one.seq, []).append((one.hash, f"checkpoint {one.number}"))
    walk = _Walk(expected)
    for seq, body, hash in _read_rows(view):
        if isinstance(body, str) and isinstance(hash, str):
            walk.check_row(seq, body, hash)
        else:
            faults.append((seq, "the row is not text"))
            walk.seq, walk.hash = seq, str(hash)
        if told and seq % TOLD_EVERY == 0:
            told(seq, last)
    faults += walk.faults
    named = max((anchor.seq if anchor else 0, *(one.seq for one in checkpoints)), default=0)
    if named > walk.seq:
        faults.append(
            (walk.seq + 1, f"{_describe_missing_rows(walk.seq + 1, named)}: the end of the ledger was cut off")
        )
    faults += _find_checkpoint_faults(checkpoints, anchor, None if foreign else view.key)
    after = max(0, walk.seq - anchor.seq) if anchor else walk.rows
    notes = (OF_ANOTHER,) if foreign else tuple(_describe_takeover(view, anchor_path.parent, faults))
    return VerifyReport(walk.rows, 0 if foreign else after, tuple(sorted(faults)), len(checkpoints), notes)


OF_ANOTHER = (
    "It was written with a key that this account does not have: its chain and its signatures were checked, and not "
    "whose they are."
)


def _describe_takeover(view: View, folder: Path, faults: list[tuple[int, str]]) -> Iterator[str]:
    """Check what came before this ledger, if its first row says that something did."""
    found = find_taken_over_state(view)
    if found is None:
        return
    if not found.get("tampered"):
        about = f"It begins with a reference to {found['rows']:,} rows of another account in `{found['state']}`"
        yield from (about + said for said in _check_referenced_rows(folder / str(found["state"]), found, faults))
    elif is_adopted(view):
        yield f"Row 1: {found['reason']}. A posture was chosen at a terminal since."
    else:
        way_out = "choosing a posture at a terminal, such as `menugate profile normal`, goes on from here"
        faults.append((1, f"{found['reason']}; {way_out}"))


def _check_referenced_rows(path: Path, found: Mapping[str, Any], faults: list[tuple[int, str]]) -> Iterator[str]:
    """Are those rows still there, and does their chain hold? Nothing more can be checked without their key."""
    import sqlite3

    from mcp_server.state.peek import open_read_only

    previous, number = GENESIS, 0
    try:
        with open_read_only(path) as plain:
            rows = plain.execute("SELECT seq, body, hash FROM ledger WHERE seq <= ? ORDER BY seq", (found["rows"],))
            for seq, body, hash in rows:
                number += 1
                if seq != number or compute_row_hash(previous, number, str(body)) != hash:
                    faults.append((1, f"row {number} of the other account's ledger does not fit its chain"))
                    return
                previous = hash
    except (OSError, sqlite3.Error):
        yield "; they cannot be read now, so nothing about them was checked."
        return
    whole = number == found["rows"] and previous == found["head"]
    yield "; their chain holds, and whose they are cannot be checked." if whole else "; they are there no longer."


def find_taken_over_state(view: View) -> dict[str, Any] | None:
    """Return what the first row says of an earlier state; None if it says nothing or was not sealed with our key."""
    row = view.fetch_one("SELECT body FROM ledger WHERE seq = 1 AND kind = :kind", kind=RowKind.SEGMENT)
    if row is None or view.key is None:
        return None
    body = read_body(row["body"])
    fields = {name: body[name] for name in TAKEN_OVER if name in body}
    return fields if view.key.has_sealed(format_segment_seal(fields), str(body.get(SEAL))) else None


def is_adopted(view: View) -> bool:
    """Has the person chosen a posture at a terminal since?"""
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
    while chunk := cursor.fetchmany(CHUNK):
        yield from chunk


def _read_anchor(path: Path, key: LedgerKey | None, faults: list[tuple[int, str]]) -> Anchor | None:
    if key is None:
        faults.append((0, "the key is missing, so neither anchor nor checkpoints can be checked"))
        return None
    # Look again, because a writer may have been in the middle of its line.
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
    before: Checkpoint | None = None
    for one in checkpoints:
        number = before.number + 1 if before else 1
        if one.number != number:
            yield one.seq, f"checkpoint {number} is missing before this row"
        elif key and one.key != key.public_key:
            yield one.seq, f"checkpoint {one.number} was signed with another key than this machine's"
        elif not is_valid_signature(one.format_statement(before), one.signature, one.key):
            yield one.seq, f"the signature of checkpoint {one.number} is not right"
        before = one
    last = before.number if before else 0
    if anchor and anchor.checkpoints > last:
        yield (before.seq if before else 0), f"checkpoint {last + 1} is missing after this row"


def describe_anchor_misfit(view: View, anchor: bytes | None, key: LedgerKey) -> str:
    """Does the ledger still have what its anchor claims? Checked at a start, before the anchor is rewritten."""
    if anchor is None:
        return "the ledger's anchor is missing"
    known = Anchor.parse_line(anchor[:SLOT], key)
    if known is None:
        return "the ledger's anchor was not written with this machine's key"
    last = view.fetch_one("SELECT max(seq) AS seq FROM ledger") or {}
    if known.seq > (last["seq"] or 0):
        return f"rows {(last['seq'] or 0) + 1} to {known.seq} of the ledger are missing from its end"
    row = view.fetch_one("SELECT hash FROM ledger WHERE seq = :seq", seq=known.seq)
    if known.seq and (row is None or row["hash"] != known.hash):
        return f"row {known.seq} of the ledger is not the one its anchor names"
    count = view.fetch_one("SELECT max(number) AS number FROM checkpoints") or {}
    return "signed checkpoints are missing" if known.checkpoints > (count["number"] or 0) else ""


def count_unanchored_rows(view: View, anchor: bytes | None, key: LedgerKey) -> int:
    """How many rows the anchor does not cover yet."""
    known = Anchor.parse_line(anchor[:SLOT], key) if anchor else None
    last = view.fetch_one("SELECT max(seq) AS seq FROM ledger") or {}
    return max(0, (last["seq"] or 0) - known.seq) if known else 0


def check_anchor(view: View, path: Path) -> tuple[int, str]:
    """How many rows the anchor does not cover yet, and what does not match it."""
    faults: list[tuple[int, str]] = []
    anchor = _read_anchor(path, view.key, faults)
    if anchor is None or view.key is None:
        return 0, faults[0][1]
    head = (view.fetch_one("SELECT max(seq) AS seq FROM ledger") or {}).get("seq") or 0
    return max(0, head - anchor.seq), describe_anchor_misfit(view, anchor.format_line(view.key), view.key)


def find_unfinished_calls(view: View, among: int) -> list[int]:
    """Find calls among the last rows without an outcome, whose process is no longer there to write one."""
    concluded: set[object] = set()
    over: set[object] = set()
    found: list[int] = []
    # Newest first, one at a time: by the time we reach a call, we know what follows it.
    for seq, body in view.fetch_each("SELECT seq, body FROM ledger ORDER BY seq DESC LIMIT :among", among=among):
        one = read_body(body)
        process = one.get("process")
        match one.get("kind"):
            case RowKind.OUTCOME:
                concluded.add(one.get("intent"))
            case RowKind.STOP:
                over.add(process)
            case RowKind.INTENT if seq not in concluded and (process in over or not is_process_running(str(process))):
                found.append(seq)
            case _:
                pass
    return sorted(found)


def is_process_running(process: str) -> bool:
    """Does the process with this name (its number comes first) still run? A reused number counts as running."""
    number = process.partition("-")[0]
    if not number.isascii() or not number.isdigit() or not 0 < int(number) < 2**31:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
