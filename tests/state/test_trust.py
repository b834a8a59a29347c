"""Is a folder trusted only with the very content that the person saw, and only by their own key?"""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.results import Refusal
from mcp_server.state.engine.chain import LedgerKey
from mcp_server.state.trust import Trusted

HERE, THERE = Path("/work/here"), Path("/work/there")


def test_trust_is_in_content(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path)
    assert not trusted.is_trusted(HERE, "aa")
    trusted.give_trust(HERE, "aa")
    assert trusted.is_trusted(HERE, "aa")
    assert not trusted.is_trusted(HERE, "bb")
    assert not trusted.is_trusted(THERE, "aa")
    trusted.give_trust(HERE, "bb")
    assert trusted.find_trusted_digest(HERE) == "bb"


def test_it_is_taken_back_once(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path)
    trusted.give_trust(HERE, "aa")
    assert trusted.withdraw_trust(HERE) is True
    assert trusted.withdraw_trust(HERE) is False
    assert not trusted.is_trusted(HERE, "aa")


def test_what_somebody_else_wrote_is_no_trust(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path)
    trusted.give_trust(HERE, "aa")
    path = trusted.get_path(HERE)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    written = json.loads(path.read_text())
    forgeries: tuple[Any, ...] = (
        {**written, "sha256": "bb"},
        {**written, "mac": "0" * 64},
        {**written, "mac": 7},
        [],
        "x",
    )
    for forged in forgeries:
        path.write_text(json.dumps(forged))
        assert trusted.find_trusted_digest(HERE) is None
    path.write_text("no JSON")
    assert trusted.find_trusted_digest(HERE) is None


def test_another_folders_trust_is_not_carried_over(tmp_path: Path) -> None:
    trusted = Trusted(tmp_path)
    trusted.give_trust(HERE, "aa")
    here, there = trusted.get_path(HERE), trusted.get_path(THERE)
    assert here is not None
    assert there is not None
    there.write_bytes(here.read_bytes())
    assert not trusted.is_trusted(THERE, "aa")


def test_another_key_trusts_nothing_of_it(tmp_path: Path) -> None:
    Trusted(tmp_path).give_trust(HERE, "aa")
    (tmp_path / "ledger.key").unlink()
    assert not Trusted(tmp_path).is_trusted(HERE, "aa")
    LedgerKey.load_or_create(tmp_path)
    assert not Trusted(tmp_path).is_trusted(HERE, "aa")


def test_where_nothing_can_be_kept_nothing_is_trusted() -> None:
    trusted = Trusted(None)
    assert trusted.find_trusted_digest(HERE) is None
    assert trusted.withdraw_trust(HERE) is False
    assert trusted.get_path(HERE) is None
    with pytest.raises(Refusal):
        trusted.give_trust(HERE, "aa")
