"""What proves that the tests pass, and what is a phase's account after any order of calls?"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.phases import OUTPUTS, REACHABLE, STEPS, Log, Phase, Proof, find_step, get_next_step
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Effect
from mcp_server.policy.phases import (
    find_counted_step,
    is_test_call,
    may_change_workspace,
    record_call_start,
    record_test_end,
)
from tests.policy.world import menus, table, tools
from tools.catalog import READ_LINE


def test_the_five_phases_are_the_seeds() -> None:
    assert [(step.phase, step.budget) for step in STEPS] == list(zip(Phase, (15, 20, 15, 10, 5), strict=True))
    assert (
        *("suspect_files", "hypothesis", "root_cause"),
        *("modified_files", "pass_to_pass_status", "fail_to_pass_status"),
    ) == OUTPUTS
    every = set(table("tools")["tools"])
    assert {name for step in STEPS for name in step.tools} | REACHABLE <= every
    assert [get_next_step(phase) for phase in (None, *Phase)] == [*STEPS, None]


def test_only_calls_of_the_phases_own_tools_are_counted() -> None:
    for phase in Phase:
        session, step = Session("s", "p", "swe", phase=phase), find_step(phase)
        assert step is not None
        counted = {name for name, tool in tools().items() if find_counted_step(session, tool, menus(), None)}
        assert counted == step.tools
        elsewhere = Session("s", "p", "data", phase=phase)
        assert not any(find_counted_step(elsewhere, tool, menus(), None) for tool in tools().values())
        by_verify = {name for name, tool in tools().items() if find_counted_step(session, tool, menus(), "TodoVerify")}
        assert by_verify == step.tools
        inside = find_counted_step(session, tools()["bash"], menus(), "analyze_test_failure")
        assert (inside is not None) == ("bash" in step.tools and phase is not Phase.REGRESSION_CHECK)


CALLS: dict[str, Any] = {
    "edit": ("Edit", {}, Effect.WRITE_LOCAL, None),
    "read": ("Read", {}, Effect.READ_LOCAL, None),
    "list": ("bash", {"command": "ls"}, Effect.READ_LOCAL, None),
    "build": ("bash", {"command": "make all"}, Effect.EXEC, None),
    "write elsewhere": ("fs_write_file", {}, Effect.WRITE_LOCAL, None),
    "tests": ("bash", {"command": "pytest"}, Effect.EXEC, None),
    "tests of a todo": ("bash", {"command": "pytest"}, Effect.EXEC, "TodoVerify"),
    "look into one": ("analyze_test_failure", {}, Effect.EXEC, None),
    "tests of the past": ("bash", {"command": "pytest"}, Effect.EXEC, "analyze_test_failure"),
}


@given(st.lists(st.tuples(st.sampled_from(list(CALLS)), st.sampled_from([0, 1, 2, None]))))
def test_only_a_run_that_passed_with_nothing_changed_since_is_proof(calls: list[tuple[str, int | None]]) -> None:
    log, holds = Log(), False
    for name, code in calls:
        tool, arguments, effect, within = CALLS[name]
        log = record_call_start(log, None, may_change_workspace(tools()[tool], effect, within))
        if "tests" in name and "past" not in name:
            # A run that was taken back or cut off proves nothing, not even what was proved before.
            assert not log.proof.is_valid
            holds = code == 0
        elif name in ("edit", "build", "write elsewhere"):
            holds = False
        if is_test_call(tools()[tool], arguments, within, READ_LINE):
            log = record_test_end(log, code)
        assert log.proof.is_valid == holds, (name, code)
        assert Log.from_body(log.body) == log


def test_back_at_the_fix_begins_anew_from_the_fix_on() -> None:
    spent = {step.phase: step.budget for step in STEPS}
    log = Log(dict.fromkeys(OUTPUTS, "x"), {str(phase): count for phase, count in spent.items()}, Proof(3, True))
    again = log.return_to_fix("two fail")
    assert [again.count_calls_left(step) for step in STEPS] == [0, 0, 15, 10, 5]
    assert set(again.outputs) == {"suspect_files", "hypothesis", "root_cause", "modified_files"}
    assert again.returns == ("two fail",)
