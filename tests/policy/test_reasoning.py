"""Is a thought accepted, and what of it is kept? The cases are tests/tables/thoughts.yaml."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.parts import asdict
from mcp_server.policy.reasoning import MAX_LINE, ReasoningOutcome, parse_thought
from mcp_server.policy.stages import StageDuty
from tests.policy.world import table
from tests.sizes import scale

CASES: list[dict[str, Any]] = table("thoughts")


@pytest.mark.parametrize("case", [pytest.param(one, id=f"{one['duty']}: {one['what']}") for one in CASES])
def test_the_table(case: dict[str, Any]) -> None:
    got = parse_thought(case["text"], StageDuty(case["duty"]))
    if "lacks" in case:
        assert isinstance(got, str)
        assert case["lacks"] in got
    else:
        assert isinstance(got, ReasoningOutcome), got
        assert asdict(got) | case["keeps"] == asdict(got)


@pytest.mark.heavy
@settings(max_examples=scale(200), deadline=None, derandomize=True)
@given(st.text(max_size=2_000), st.sampled_from(StageDuty))
def test_any_text_gets_one_answer_and_little_of_it_is_kept(text: str, duty: StageDuty) -> None:
    got = parse_thought(text, duty)
    assert got == parse_thought(text, duty)
    if isinstance(got, ReasoningOutcome):
        assert all(len(part) <= MAX_LINE and "\n" not in part for part in asdict(got).values())


def test_what_is_kept_is_cut() -> None:
    parts = "\n".join(f"{name}: {'long ' * 500}" for name in ("Analyze", "Research", "Plan", "Reflect", "Action"))
    got = parse_thought(f"{parts}\nDelivery: DONE", StageDuty.MACRO)
    assert isinstance(got, ReasoningOutcome)
    assert len(got.plan_delta) == MAX_LINE
    assert got.plan_delta.endswith("…")
