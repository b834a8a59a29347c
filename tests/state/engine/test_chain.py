"""Does a chain show what was changed, an anchor what was cut off, and a key what is not ours?"""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.model.results import Refusal
from mcp_server.state.engine.chain import (
    GENESIS,
    LONGEST_BODY,
    SLOT,
    Anchor,
    AnchorFile,
    Checkpoint,
    LedgerKey,
    compute_row_hash,
    format_canonical_json,
    is_valid_signature,
)

ANCHOR = Anchor(7, "a" * 64, 1_800_000_000, 2)


@pytest.fixture
def key(tmp_path: Path) -> LedgerKey:
    return LedgerKey.load_or_create(tmp_path / "keys")


def test_the_same_fields_are_the_same_text_in_any_order() -> None:
    assert format_canonical_json({"b": 1, "a": "ü", "c": None}) == format_canonical_json({"a": "ü", "b": 1})
    assert format_canonical_json({"a": "\ud800"}).isascii()


def test_a_text_too_long_is_cut_and_the_rest_stays() -> None:
    text = format_canonical_json({"a": "x" * LONGEST_BODY, "b": 1})
    assert len(text) < LONGEST_BODY
    assert json.loads(text)["b"] == 1
    assert json.loads(text)["a"].endswith("…")


def test_every_part_of_a_row_is_in_its_hash() -> None:
    first = compute_row_hash(GENESIS, 1, "{}")
    assert first == compute_row_hash(GENESIS, 1, "{}")
    assert (
        len(
            {
                first,
                compute_row_hash(first, 1, "{}"),
                compute_row_hash(GENESIS, 2, "{}"),
                compute_row_hash(GENESIS, 1, "[]"),
            }
        )
        == 4
    )


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    assert LedgerKey.load(folder) is None
    one, other = LedgerKey.load_or_create(folder), LedgerKey.load_or_create(folder)
    assert one.account == other.account
    assert (folder / "ledger.key").stat().st_mode & 0o777 == 0o600
    assert LedgerKey.load_or_create(tmp_path / "others").account != one.account
    assert LedgerKey.load(None) is LedgerKey.load(None), "a process without a folder has one for itself"


def test_what_holds_no_key_seals_nothing(tmp_path: Path) -> None:
    (tmp_path / "ledger.key").write_text("")
    assert LedgerKey.load(tmp_path) is None
    (tmp_path / "folder" / "ledger.key").mkdir(parents=True)
    with pytest.raises(Refusal):
        LedgerKey.load_or_create(tmp_path / "folder")


def test_only_its_own_seal_is_one(key: LedgerKey, tmp_path: Path) -> None:
    mac = key.compute_mac("text")
    assert key.has_sealed("text", mac)
    assert not key.has_sealed("other", mac)
    assert not LedgerKey.load_or_create(tmp_path / "others").has_sealed("text", mac)
    assert not key.has_sealed("text", "\ud800")


def test_an_anchor_is_read_back_by_its_own_key_alone(key: LedgerKey, tmp_path: Path) -> None:
    line = ANCHOR.format_line(key)
    assert len(line) == SLOT
    assert Anchor.parse_line(line, key) == ANCHOR
    assert Anchor.parse_line(line, LedgerKey.load_or_create(tmp_path / "others")) is None
    assert Anchor.parse_line(line.replace(b'"seq":7', b'"seq":8'), key) is None
    for damaged in (b"", b"{}", b"[]", b"null", line[:40], b"\xff" * SLOT):
        assert Anchor.parse_line(damaged, key) is None


def test_an_anchor_is_written_in_place(key: LedgerKey, tmp_path: Path) -> None:
    file = AnchorFile(tmp_path / "ledger.anchor")
    for seq in (10**6, 3):
        file.write(replace(ANCHOR, seq=seq), key)
        found = Anchor.parse_line(file.read(), key)
        assert found is not None
        assert found.seq == seq
    file.close()
    assert (tmp_path / "ledger.anchor").stat().st_size == SLOT


def test_a_checkpoint_stands_for_those_before_it(key: LedgerKey) -> None:
    first = Checkpoint(1, 5, "a" * 64, 1)
    first = replace(first, key=key.public_key, signature=key.sign(first.format_statement(None)))
    second = Checkpoint(2, 9, "b" * 64, 2)
    assert second.format_statement(first) != second.format_statement(None)
    assert is_valid_signature(first.format_statement(None), first.signature, first.key)
    assert not is_valid_signature(second.format_statement(None), first.signature, first.key)
    assert not is_valid_signature(first.format_statement(None), "zz", first.key)
    assert not is_valid_signature(first.format_statement(None), first.signature, "")
