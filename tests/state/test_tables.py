"""Has every table of the state somebody who writes it, and a test?"""

import ast
import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

import mcp_server.state
from mcp_server.state.engine.schema import STEPS
from tests.yaml_text import load_yaml

STATE = Path(mcp_server.state.__file__).parent
KEPT = "tests/tables/state_steps.yaml"
DIGESTS: list[str] = load_yaml((Path(__file__).parents[2] / KEPT).read_text())
MADE = [table for step in STEPS for sql in step for table in re.findall(r"CREATE TABLE (\w+)", sql)]
SQLITES_OWN = {"sqlite_master"}
WRITES = r"\b(?:INSERT (?:OR \w+ )?INTO|REPLACE INTO|UPDATE) ([a-z_]+)"
READS = r"\b(?:FROM|JOIN) ([a-z_]+)"


def spoken_of(pattern: str) -> Iterator[tuple[str, str]]:
    for path in sorted(STATE.rglob("*.py")):
        texts = [one.value for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Constant)]
        for sql in (text for text in texts if isinstance(text, str)):
            yield from ((str(path.relative_to(STATE)), table) for table in re.findall(pattern, sql))


def digest(step: tuple[str, ...]) -> str:
    return sha256("\n".join(step).encode()).hexdigest()[:16]


def test_a_step_is_never_edited() -> None:
    """A state that was brought up to date by the old one would never see the change: add a step behind it instead."""
    for number, (step, kept) in enumerate(zip_longest(STEPS, DIGESTS), 1):
        assert step is not None, f"step {number} is gone, which {KEPT} has"
        assert kept is not None, f'step {number} has no line in {KEPT}: add `- "{digest(step)}"`'
        assert digest(step) == kept, f"step {number} was edited; undo that, and add a step behind it"


def test_every_table_is_made_once() -> None:
    assert len(set(MADE)) == len(MADE)


def test_every_table_is_written_by_a_module_of_the_state() -> None:
    written = {table for _, table in spoken_of(WRITES)}
    assert [f"no module of mcp_server/state/ writes the table `{name}`" for name in MADE if name not in written] == []


def test_every_table_that_is_used_is_made() -> None:
    known = {*MADE, *SQLITES_OWN}
    where = "which no step of STEPS in mcp_server/state/engine/schema.py makes"
    strange = {pair for pair in (*spoken_of(WRITES), *spoken_of(READS)) if pair[1] not in known}
    assert [f"mcp_server/state/{module} uses `{table}`, {where}" for module, table in sorted(strange)] == []


def test_every_table_is_named_in_a_test() -> None:
    folder = Path(__file__).parent
    said = "".join(path.read_text() for path in folder.glob("*.py"))
    missing = [name for name in MADE if not re.search(rf"(?<![a-z]){name}(?![a-z])", said)]
    assert [f"no test in tests/state/ names the table `{name}`" for name in missing] == []
