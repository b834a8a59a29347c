"""Does the suite keep its own promises: what is heavy is marked so, and what did not run is named?"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.test_rooms import HOUSE
from tests.clients.served import PATIENCE

CLOCKS = {"monotonic", "perf_counter"}
SIZES = {"scale", "sample", "FULL"}

Test = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def suite() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted((HOUSE / "tests").rglob("test_*.py"))
    return tuple((str(path.relative_to(HOUSE)), ast.parse(path.read_text())) for path in paths)


def names_in(tree: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def unmarked(module: ast.Module) -> Iterator[Test]:
    """Its tests that are not marked `heavy`."""
    assigned = [node for node in module.body if isinstance(node, ast.Assign)]
    if any("heavy" in names_in(node.value) for node in assigned if names_in(node.targets[0]) == {"pytestmark"}):
        return
    for node in ast.walk(module):
        if not isinstance(node, Test) or not node.name.startswith("test_"):
            continue
        if not any("heavy" in names_in(one) for one in node.decorator_list):
            yield node


def sized(module: ast.Module) -> Iterator[str]:
    """Tests that run at full size in `make attack`, which would leave them out."""
    if not any(isinstance(node, ast.ImportFrom) and node.module == "tests.sizes" for node in module.body):
        return
    about = set(SIZES)
    for node in module.body:
        if isinstance(node, ast.Assign) and names_in(node.value) & about:
            about |= names_in(node.targets[0])
    yield from (one.name for one in unmarked(module) if names_in(one) & about)


def timed(module: ast.Module) -> Iterator[str]:
    """Tests that a busy machine can fail."""
    for one in unmarked(module):
        asserts = [node for node in ast.walk(one) if isinstance(node, ast.Assert)]
        if any(names_in(node.test) & read_off_clocks(one) for node in asserts):
            yield one.name


def read_off_clocks(test: Test) -> set[str]:
    """The clocks themselves, and what the test has worked out from one."""
    about = set(CLOCKS)
    for node in ast.walk(test):
        if isinstance(node, ast.Assign) and names_in(node.value) & about:
            about |= set[str]().union(*map(names_in, node.targets))
    return about


def test_what_has_a_full_size_is_heavy() -> None:
    assert [(where, name) for where, module in suite() for name in sized(module)] == []


def test_what_looks_at_the_clock_is_heavy() -> None:
    assert [(where, name) for where, module in suite() for name in timed(module)] == []


PLANTED = """
from tests.sizes import scale
ROUNDS = scale(100)
def test_rounds(): assert range(ROUNDS)
def test_time(): assert time.monotonic() - since < 2
def test_worked_out():
    took = time.monotonic() - since
    assert took < 2
@pytest.mark.heavy
def test_marked(): assert time.monotonic() - since < ROUNDS
"""


def test_a_planted_one_is_found() -> None:
    module = ast.parse(PLANTED)
    assert list(sized(module)) == ["test_rounds"]
    assert list(timed(module)) == ["test_time", "test_worked_out"]


@pytest.mark.parametrize("workers", [["-p", "no:xdist"], ["-n", "1"]], ids=["alone", "with workers"])
def test_what_did_not_run_is_named_with_what_it_lacks(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_lacking.py").write_text(
        "import pytest\n\n"
        "def test_in_its_midst() -> None:\n    pytest.skip('there is no strace here')\n\n"
        "@pytest.mark.skipif(True, reason='no kernel for it')\ndef test_from_the_start() -> None: ...\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", *workers]
    done = subprocess.run(
        [*words, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=HOUSE,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(HOUSE)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not run: test_lacking.py::test_in_its_midst: there is no strace here\n" in done.stdout
    assert "not run: test_lacking.py::test_from_the_start: no kernel for it\n" in done.stdout
