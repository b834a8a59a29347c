"""What does one change from a terminal leave on record, and what if the state is not in good order?"""

from functools import partial
from pathlib import Path

import pytest

from mcp_server.state.engine.chain import ANCHOR
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.ledger import record_health
from mcp_server.state.reader import Reader
from mcp_server.state.terminal import change_state

CHANGE = partial(record_health, reason="a change", policy="ask")


@pytest.fixture
def state(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "keys").mkdir(mode=0o700)
    return tmp_path / ".menugate" / "state.db", tmp_path / "keys"


def kinds(state: tuple[Path, Path]) -> list[str]:
    with Reader.open(f"sqlite:///{state[0]}", secrets=state[1]) as reader:
        assert reader.verify().ok
        return [row.kind for row in reader.read_rows()]


def test_a_state_in_good_order_gets_the_change_and_nothing_beside_it(state: tuple[Path, Path]) -> None:
    change_state(*state, CHANGE)
    assert kinds(state) == ["start", "health", "stop"], "the first one makes the state"
    change_state(*state, CHANGE)
    assert kinds(state) == ["start", "health", "stop", "health"]


def test_rows_without_an_anchor_are_put_on_record_first(state: tuple[Path, Path]) -> None:
    change_state(*state, CHANGE)
    anchor = state[0].with_name(ANCHOR)
    before = anchor.read_bytes()
    change_state(*state, CHANGE)
    # As if that process had been killed between its commit and its anchor.
    anchor.write_bytes(before)
    change_state(*state, CHANGE)
    assert kinds(state)[4:] == ["start", "health", "stop"]


def test_a_change_that_fails_leaves_nothing(state: tuple[Path, Path]) -> None:
    change_state(*state, CHANGE)

    def fail(tx: Transaction) -> None:
        CHANGE(tx)
        raise LookupError

    with pytest.raises(LookupError):
        change_state(*state, fail)
    change_state(*state, CHANGE)
    assert kinds(state) == ["start", "health", "stop", "health"]
