"""Which tools does a phase leave on the menu, and what does a call in it prove?"""

from msgspec.structs import replace

from mcp_server.model.menus import Menus
from mcp_server.model.phases import BEGINNING, REACHABLE, Log, Proof, Step, find_step
from mcp_server.model.sessions import Session
from mcp_server.model.shell import ReadLine
from mcp_server.model.tools import READING, Arguments, Effect, Tool
from mcp_server.model.verification import LineEvidence, judge_line

LOOKING_INTO = "analyze_test_failure"


def is_phase_narrowing(session: Session, tool: Tool, menus: Menus, within: str | None = None) -> bool:
    """True if the phase decides about this call: one in the mode that has the phases' own tools, or one that a tool
    makes there for its own answer."""
    if session.phase is None or tool.meta:
        return False
    mode = menus.by_name.get(session.mode)
    if within is None and session.flat:
        return any(BEGINNING in mode.tools for mode in menus.find_modes_with(tool.name))
    return session.flat or (mode is not None and BEGINNING in mode.tools)


def is_tool_in_phase(phase: str | None, name: str) -> bool:
    """An unknown phase includes only the ways out of it."""
    step = find_step(phase)
    return name in REACHABLE or (step is not None and name in step.tools)


def find_counted_step(session: Session, tool: Tool, menus: Menus, within: str | None) -> Step | None:
    """Find the step whose budget the call uses. A call made by a counted call is not counted again."""
    step = find_step(session.phase) if is_phase_narrowing(session, tool, menus, within) else None
    if step is None or tool.name not in step.tools or within in step.tools:
        return None
    return step


def record_call_start(log: Log, step: Step | None, changes: bool) -> Log:
    """Log a call before it runs: until it reports back, it may have changed anything it was granted."""
    counted = log.count_call(step.phase) if step else log
    return replace(counted, proof=replace(log.proof, changed=True)) if changes else counted


def record_test_end(log: Log, exit_code: object) -> Log:
    """Log what a test run proves, from the exit code of its command."""
    return replace(log, proof=Proof(log.proof.ran + 1, exit_code == 0))


def may_change_workspace(tool: Tool, effect: Effect, within: str | None) -> bool:
    """True if the call may change what the tests test. Analysing one failing test does not."""
    return effect not in READING and LOOKING_INTO not in (tool.name, within)


def is_test_call(tool: Tool, arguments: Arguments, within: str | None, read: ReadLine) -> bool:
    """True if the call runs the tests of the workspace as it is."""
    if tool.name != "bash" or within == LOOKING_INTO:
        return False
    return judge_line(read(str(arguments.get("command", ""))), read) is LineEvidence.PROOF
