"""Are the parts of a line what it runs, and does the part that asks first ask for the reason that decides?"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcp_server.model.tools import CallPart
from tests.sizes import scale
from tests.tools.shell.line_grammar import LineGrammar
from tests.yaml_text import load_yaml
from tools.shell.classify import classify_line
from tools.shell.line_judge import MAX_COMMANDS
from tools.shell.line_parts import find_line_parts, list_line_parts
from tools.shell.verdicts import CommandKind

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "tables" / "line_parts.yaml").read_text())
LINES = 40_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["line"]))
def test_a_part_says_what_it_does(case: dict[str, Any]) -> None:
    parts = find_line_parts(case["line"], ".")
    assert [[part.text, part.does] for part in parts] == [wanted[:2] for wanted in case["parts"]]
    for part, wanted in zip(parts, case["parts"], strict=True):
        assert part.why.startswith(wanted[2] if wanted[2:] else "")
        assert bool(part.why) == (part.does == "asks")
    agrees(case["line"], parts)


def agrees(line: str, parts: Sequence[CallPart]) -> None:
    verdict = classify_line(line)
    for part in parts:
        assert part.span is None or line[slice(*part.span)] == part.text
    if not parts:
        return
    asking = [part for part in parts if part.does == "asks"]
    assert bool(asking) == (verdict.kind is CommandKind.ASKED)
    if asking:
        assert verdict.because in [part.why for part in asking]
    else:
        assert ("builds" in [part.does for part in parts]) == (verdict.kind is CommandKind.BUILDS)


@pytest.mark.heavy
def test_the_parts_agree_with_the_decision_on_random_lines() -> None:
    for seed in range(scale(LINES)):
        line = LineGrammar(Random(f"part {seed}")).line()
        agrees(line, find_line_parts(line, "."))


def test_a_long_line_ends_with_the_part_that_is_one_too_many() -> None:
    parts = find_line_parts("; ".join(["ls"] * 400), ".")
    assert [part.does for part in parts] == ["reads"] * MAX_COMMANDS + ["asks"]


@pytest.mark.parametrize("name", ["bash_id", "shell_id"])
def test_nothing_is_said_of_a_line_in_a_shell_that_stays_open(name: str) -> None:
    assert list_line_parts({"command": "ls; make", name: "mine"}) == ()
    assert len(list_line_parts({"command": "ls; make", name: "mine", "run_in_background": True})) == 2


def test_the_folder_counts() -> None:
    assert [part.does for part in islice(find_line_parts("wc a > x; ls", "src"), 2)] == ["builds", "reads"]
    assert [part.does for part in islice(find_line_parts("wc a > x; ls", "/etc"), 2)] == ["asks", "reads"]
