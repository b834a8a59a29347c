"""Does a walk of two servers find nothing that ran under a revoked policy, and would it find it?"""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.model.posture import Posture, PostureChoice, RunControl, WorkMode
from mcp_server.model.results import Code, Problem
from mcp_server.policy import posture
from mcp_server.policy.posture import PostureStep
from mcp_server.state import ledger
from mcp_server.state.engine.rows import IntentRow
from mcp_server.state.engine.transaction import Transaction
from tests.journeys.postures import asked, together, walked, walking
from tests.state.parts import choose_all

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


async def test_nobody_is_asked_under_a_posture_that_another_server_has_narrowed(tmp_path: Path) -> None:
    async with walking(tmp_path, 1) as walk:
        here, other = walk.houses
        live = next(live for index, live in walk.live_sessions if walk.houses[index] is here)
        who = live.session.principal
        for number in range(0, 16, 2):
            manual = replace(Posture(), run_control=RunControl.MANUAL)
            await choose_all(other.core.store, who, replace(manual, epoch=number))
            question = await here.pipeline.run(asked(live, "walk_write", {"call": "none"}))
            assert isinstance(question, Problem)
            assert question.code is Code.APPROVAL_REQUIRED
            await choose_all(other.core.store, who, replace(manual, work_mode=WorkMode.PLAN, epoch=number + 1))
            refusal = await here.pipeline.run(asked(live, "walk_write", {"call": "none"}))
            assert isinstance(refusal, Problem)
            assert refusal.code is Code.READ_ONLY_WORK
