"""Does a walk of two servers find nothing that ran under a revoked policy, and would it find it?"""

from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_server.model.posture import PostureChoice
from mcp_server.policy import posture
from mcp_server.policy.posture import PostureStep
from mcp_server.state import ledger
from mcp_server.state.engine.rows import IntentRow
from mcp_server.state.engine.transaction import Transaction
from tests.journeys.postures import together, walked

pytestmark = pytest.mark.anyio


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
async def test_no_call_runs_under_a_policy_that_was_revoked(tmp_path: Path, seed: int) -> None:
    judge, _ = await walked(tmp_path, 300, seed)
    assert judge.faults == []
    assert judge.calls > 50
    assert judge.changes > 30


@pytest.mark.heavy
def test_no_call_does_so_in_another_process_either(tmp_path: Path) -> None:
    judge = together(tmp_path, 400, 1)
    assert judge.faults == []
    assert judge.calls > 50
    assert judge.changes > 30


@pytest.mark.heavy
async def test_a_gate_that_looks_at_no_epoch_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def heedless(tx: Transaction, intent: IntentRow) -> int:
        return tx.append(intent.kind, ledger.build_call_fields(intent))

    monkeypatch.setattr(ledger, "record_intent", heedless)
    judge, _ = await walked(tmp_path, 300, 1)
    assert any("another posture than held" in fault for fault in judge.faults)


@pytest.mark.heavy
async def test_a_change_that_does_not_wait_for_its_calls_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = posture.end_calls

    def hasty(choice: PostureChoice, _over: Callable[[int, str], bool]) -> list[PostureStep]:
        return patient(choice, lambda _seq, _process: True)

    monkeypatch.setattr(posture, "end_calls", hasty)
    # Whether a call runs at that moment is up to the machine: one walk may not meet any.
    for seed in range(1, 7):
        judge, _ = await walked(tmp_path / str(seed), 600, seed)
        if any("came into force while" in fault for fault in judge.faults):
            return
    pytest.fail("six walks went by without a word about it")
