"""Is every row of a kind of its own, and can one of any shape be read?"""

from mcp_server.state.engine.rows import IntentRow, QuestionRow, RefusalRow, Row, RowKind, WallClock


def test_each_kind_of_decision_is_a_kind_of_row() -> None:
    assert (IntentRow.kind, RefusalRow.kind, QuestionRow.kind) == (RowKind.INTENT, RowKind.REFUSAL, RowKind.QUESTION)


def test_a_row_of_any_shape_can_be_read() -> None:
    assert Row(1, "", "", {}).kind == ""
    assert Row(1, "", "", {"at": "yesterday"}).at == 0
    assert Row(1, "", "", {"kind": "intent", "at": 7}).at == 7


def test_the_clock_counts_nanoseconds() -> None:
    assert WallClock().now_ns() > 1_700_000_000 * 10**9
