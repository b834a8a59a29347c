"""Does the page about todos and phases say what holds?"""

import re
from pathlib import Path

from mcp_server.model.phases import STEPS
from tools.phases.failing_test import VERDICTS
from tools.todos.criteria import KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "work.md").read_text()


def rows(head: str) -> list[list[str]]:
    """The cells of the table that begins with this word."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[2:]]


def words(cell: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]+", cell))


def test_the_phases_are_those_there_are() -> None:
    told = [(words(name), int(calls), words(tools), words(needs)) for name, calls, tools, needs in rows("phase")]
    assert told == [({str(step.phase)}, step.budget, set(step.tools), set(step.outputs)) for step in STEPS]


def test_the_criteria_are_those_there_are() -> None:
    told = {min(words(kind)): words(params) - {"and", "or"} for kind, params, _ in rows("criterion")}
    assert told == {kind: set(needed | more) for kind, (needed, more) in KEYS.items()}


def test_every_verdict_is_explained() -> None:
    assert {word for row in rows("verdict") for word in words(row[0])} == set(VERDICTS)
