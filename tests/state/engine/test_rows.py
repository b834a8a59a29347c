"""Does every row hold what a decision was made of, under the names that stay?"""

from dataclasses import replace

from mcp_server.model.results import Code
from mcp_server.state.engine.chain import format_canonical_json
from mcp_server.state.engine.rows import IntentRow, Origin, QuestionRow, RefusalRow, Row, RowKind, WallClock
from tests.state.parts import DENIED, SESSION, intent, outcome, refused

FIELDS = """
principal conversation session run step client transport passing mode stage work_mode run_control profile model_mode
surface ai_mode reasoning tool_count tool carrier effect needs verdict layer code rule reason arguments_sha256
arguments_bytes epoch
"""


def test_the_names_of_a_decisions_fields_stay() -> None:
    assert set(intent().to_fields()) == set(FIELDS.split())


def test_what_only_some_calls_have_stands_only_there() -> None:
    origin = Origin("c1", "opencode", "stdio", within=7)
    inner = replace(intent(session=replace(SESSION, phase="fix")), origin=origin)
    assert {"phase": "fix", "within": 7}.items() <= inner.to_fields().items()


def test_a_refusal_says_why() -> None:
    fields = refused().to_fields()
    assert (fields["verdict"], fields["layer"], fields["code"]) == ("deny", "rules", Code.RULE_DENIED)
    assert fields["rule"] == DENIED.rule


def test_each_kind_of_decision_is_a_kind_of_row() -> None:
    assert (IntentRow.kind, RefusalRow.kind, QuestionRow.kind) == (RowKind.INTENT, RowKind.REFUSAL, RowKind.QUESTION)
    question = QuestionRow(SESSION, intent().posture, "bash", DENIED, question="k7")
    assert question.to_fields()["question"] == "k7"


def test_an_outcome_repeats_whose_call_it_was() -> None:
    fields = outcome(7).to_fields()
    assert (fields["intent"], fields["session"], fields["tool"], fields["ending"]) == (7, SESSION.id, "Read", "done")
    assert outcome(7, code=Code.NOT_FOUND).to_fields()["code"] is Code.NOT_FOUND


def test_every_row_can_be_written_and_one_of_any_shape_be_read() -> None:
    for one in (intent(), refused(), outcome(1)):
        format_canonical_json(one.to_fields())
    assert Row(1, "", "", {}).kind == ""
    assert Row(1, "", "", {"at": "yesterday"}).at == 0
    assert Row(1, "", "", {"kind": "intent", "at": 7}).at == 7


def test_the_clock_counts_nanoseconds() -> None:
    assert WallClock().now_ns() > 1_700_000_000 * 10**9
