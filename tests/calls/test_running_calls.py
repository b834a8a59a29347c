"""What is a call that runs called, where the person reads it, and when is it over?"""

from dataclasses import dataclass
from typing import cast

import pytest

from mcp_server.calls.running_calls import MOST_SHOWN, RunningCall
from mcp_server.calls.stops import MAX_NAMED, limit_names, parse_process_id
from mcp_server.model.processes import ChildProcess
from mcp_server.model.results import Code

pytestmark = pytest.mark.anyio


@dataclass
class Child:
    pid: int
    code: int | None = None


def running(about: str = "", *children: Child) -> RunningCall:
    call = RunningCall("me", "s1", "bash", about)
    call.children += [cast(ChildProcess, child) for child in children]
    return call


async def test_it_runs_from_when_it_was_let_through_until_its_last_process_ended() -> None:
    child = Child(7)
    call = running("make", child)
    assert call.is_running
    child.code = 0
    assert not call.is_running
    call.acting = True
    assert call.is_running
    call.over = True
    assert not call.is_running


async def test_who_waits_for_an_answer_is_waiting_until_it_is_over() -> None:
    call = running()
    call.asks = True
    assert call.is_waiting
    assert not call.is_running
    call.over = True
    assert not call.is_waiting


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ("git  push\n origin", "git push origin"),
        ("a\x1b[31mb", "a\\u001b[31mb"),
        ("x" * 500, "x" * (MOST_SHOWN - 1) + "…"),
        ("my secret", "my [redacted]"),
    ],
)
async def test_its_first_words_are_one_line_without_secrets(about: str, shown: str) -> None:
    assert running(about).describe_subject(lambda text: text.replace("secret", "[redacted]")) == shown


async def test_the_person_reads_where_it_runs() -> None:
    assert running("make", Child(7), Child(0), Child(8, 1)).describe_call(str) == "`bash` `make` (pid 7, session s1)"
    call = running()
    call.asks = True
    assert call.describe_call(str) == "`bash` (waiting for your answer, session s1)"


async def test_one_that_was_stopped_says_by_whom() -> None:
    call = running()
    call.stopped = "the person stopped it"
    problem = call.build_stopped_problem()
    assert problem.code is Code.CANCELLED
    assert "`bash` ended early: the person stopped it." in problem.message


def test_a_long_list_of_names_is_counted() -> None:
    names = [str(number) for number in range(MAX_NAMED + 3)]
    assert limit_names(names[:MAX_NAMED]) == tuple(names[:MAX_NAMED])
    assert limit_names(names)[-1] == "and 3 more"
    assert len(limit_names(names)) == MAX_NAMED + 1


def test_a_process_is_named_by_its_number_first() -> None:
    assert parse_process_id("4711-abc-1") == 4711
