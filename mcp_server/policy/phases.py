"""What does a phase leave of the menu, and what does a call in it prove?"""

import re
from collections.abc import Mapping
from dataclasses import replace

from mcp_server.model.menus import Menus
from mcp_server.model.phases import BEGINNING, REACHABLE, Log, Proof, Step, find_step
from mcp_server.model.sessions import Session
from mcp_server.model.tools import READING, Arguments, Effect, Tool
from mcp_server.policy.shell_reader import read_plain_words

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PYTHON = re.compile(r"(python|pypy)[\d.]*")
THROUGH = frozenset(("uv", "poetry", "pdm", "hatch"))
DRY = frozenset(("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-t", "--touch"))
MODULES = frozenset(("pytest", "unittest", "tox", "nox", "nose2"))
RUNNERS: Mapping[str, frozenset[str] | None] = {
    "pytest": None,
    "py.test": None,
    "tox": None,
    "nox": None,
    "jest": None,
    "vitest": None,
    "mocha": None,
    "rspec": None,
    "phpunit": None,
    "ctest": None,
    "cargo": frozenset(("test", "nextest")),
    "go": frozenset(("test",)),
    "npm": frozenset(("test", "t")),
    "yarn": frozenset(("test",)),
    "pnpm": frozenset(("test",)),
    "make": frozenset(("test", "check")),
    "mvn": frozenset(("test", "verify")),
    "gradle": frozenset(("test", "check")),
    "gradlew": frozenset(("test", "check")),
    "dotnet": frozenset(("test",)),
}
"""What runs tests, and the words behind it that make it do so; None where it does nothing else."""
LOOKING_INTO = "analyze_test_failure"
LOOKING = frozenset(
    ("--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--setup-plan", "--no-run")
) | frozenset(("--list", "--listTests", "--setup-only", "--cache-show", "--markers", "--trace-config"))
"""Flags with which nothing is tested, or may not be."""


def is_phase_narrowing(session: Session, tool: Tool, menus: Menus, within: str | None = None) -> bool:
    """Is this, here, a call that a phase speaks about? Those are the calls in the mode that has the phases' own tools,
    and what a tool does there on the way to its answer."""
    if session.phase is None or tool.meta:
        return False
    here = menus.get(session.mode)
    if within is None and session.flat:
        return any(BEGINNING in mode.tools for mode in menus.find_modes_with(tool.name))
    return session.flat or (here is not None and BEGINNING in here.tools)


def is_tool_in_phase(phase: str | None, name: str) -> bool:
    """A phase nobody knows includes the ways out of it alone."""
    step = find_step(phase)
    return name in REACHABLE or (step is not None and name in step.tools)


def find_counted_step(session: Session, tool: Tool, menus: Menus, within: str | None) -> Step | None:
    """The step whose budget the call takes from; a call made by one that was counted itself is not counted again."""
    step = find_step(session.phase) if is_phase_narrowing(session, tool, menus, within) else None
    if step is None or tool.name not in step.tools or within in step.tools:
        return None
    return step


def record_call_start(log: Log, step: Step | None, changes: bool) -> Log:
    """What is known before a call runs: until it has said how it went, it may have changed anything it was granted."""
    counted = log.count_call(step.phase) if step else log
    return replace(counted, proof=replace(log.proof, changed=True)) if changes else counted


def record_test_end(log: Log, exit_code: object) -> Log:
    """What a run of the tests proves, by how its command ended."""
    return replace(log, proof=Proof(log.proof.ran + 1, exit_code == 0))


def may_change_workspace(tool: Tool, effect: Effect, within: str | None) -> bool:
    """May the call change what the tests are about? Looking into one failing test does not."""
    return effect not in READING and LOOKING_INTO not in (tool.name, within)


def is_test_call(tool: Tool, arguments: Arguments, within: str | None) -> bool:
    """Does the call run the tests, of the workspace as it is?"""
    return tool.name == "bash" and within != LOOKING_INTO and is_test_command(str(arguments.get("command", "")))


def is_test_command(command: str) -> bool:
    """One plain command that runs tests. Of `pytest || true` or `pytest | tail` the exit code says nothing."""
    words = read_plain_words(command) or ()
    while words and ASSIGNMENT.match(words[0]):
        # What else it is told by its environment may be to run nothing.
        if not words[0].startswith("PYTHON"):
            return False
        words = words[1:]
    return (
        bool(words) and not LOOKING.intersection(words[1:]) and _is_test_runner(words[0].rsplit("/", 1)[-1], words[1:])
    )


def _is_test_runner(name: str, rest: tuple[str, ...]) -> bool:
    if PYTHON.fullmatch(name):
        return len(rest) > 1 and rest[0] == "-m" and rest[1] in MODULES
    if name in THROUGH and rest[:1] == ("run",) and len(rest) > 1:
        return _is_test_runner(rest[1], rest[2:])
    if name == "make" and DRY.intersection(rest):
        return False
    wanted = RUNNERS.get(name, frozenset())
    return wanted is None or bool(wanted.intersection(rest[:2]))
