"""Can a part of a line pass for menugate's own words?"""

from mcp_server.calls.approval_parts import PARTS_HEAD, ShownPart, build_part_fields, format_part_lines
from mcp_server.guards.git_index import Tracking
from mcp_server.guards.loss_sizes import MeasuredLoss
from mcp_server.guards.path_sizes import PathSize
from mcp_server.guards.redaction import Redactor
from mcp_server.model.tools import CallPart, Loss

REDACTOR = Redactor(())
READS = ShownPart(CallPart("ls", "reads", span=(0, 2)), False)


def test_every_part_stands_in_quotes_on_a_line_of_its_own() -> None:
    spoof = ShownPart(CallPart('x\n  "ls": reads', "asks", "`x\n\u202eApproved` is not known", (3, 9)), False)
    lines = list(format_part_lines([READS, spoof], REDACTOR))
    assert lines[:2] == [PARTS_HEAD, '  "ls": reads']
    assert len(lines) == 3 and "\n" not in lines[2]
    assert lines[2].startswith('  "x\\n"')
    assert "\u202e" not in lines[2] and '\\u202eApproved"' in lines[2]


def test_one_part_is_the_line_itself() -> None:
    assert list(format_part_lines([READS], REDACTOR)) == []


def test_the_part_that_made_it_ask_is_said() -> None:
    asks = ShownPart(CallPart("rm x", "asks", "`rm` is not known", (6, 10)), True)
    assert list(format_part_lines([READS, asks], REDACTOR))[2] == '  "rm x": asks, for the reason above'
    fields = build_part_fields([READS, asks], REDACTOR)
    assert [(one["text"], one["start"], one["end"], one["decided"]) for one in fields] == [
        ("ls", 0, 2, False),
        ("rm x", 6, 10, True),
    ]


def test_a_letter_that_does_not_print_is_written_out() -> None:
    asks = ShownPart(CallPart("l\u115fs", "asks", "`l\u115fs` is not known", (6, 9)), False)
    assert not any("\u115f" in line for line in format_part_lines([READS, asks], REDACTOR))


def test_a_reason_that_several_parts_share_is_given_once() -> None:
    why = "`alias ls=rm` may change what it does"
    parts = [ShownPart(CallPart(text, "asks", why, None), False) for text in ("ls", "cat x")]
    assert list(format_part_lines(parts, REDACTOR)) == [
        "What the line does:",
        '  "ls": could do more, because "alias ls=rm" may change what it does',
        '  "cat x": could do more, for the same reason',
    ]


def test_what_the_question_says_of_a_file_already_is_not_said_again() -> None:
    loss = MeasuredLoss(Loss("unlinks", "a"), PathSize("a", "file", 7, tracking=Tracking.TRACKED))
    asks = ShownPart(CallPart("rm a", "asks", "`rm` deletes files"), True, (loss,))
    (_, once) = format_part_lines([asks], REDACTOR)
    assert once.endswith('deletes the file "a", now 7 bytes, tracked by git')
    (_, again) = format_part_lines([asks], REDACTOR, stated={"a"})
    assert again.endswith('; deletes the file "a"')
