"""Is a module's test where its name says: `mcp_server/ROOM/NAME.py` in `tests/ROOM/test_NAME.py`?"""

import ast
from pathlib import Path

from mcp_server.cli.parser import build_parser
from tests.architecture.test_rooms import HOUSE, modules, parsed
from tests.yaml_text import load_yaml

TESTS = HOUSE / "tests"
SHARE = 0.75
NO_TEST_BY_NAME = {"__init__", "__main__", "definitions"}
"""Nothing in them decides anything; definitions are tested over the whole catalogue, in tests/tools."""
ROOMS_BY_CONCEPT = {"model", "cli", "programs"}
"""Values are tested by those who use them, commands by tests/tables/cli.yaml, programs in the sandboxes they run in."""
ELSEWHERE = {
    "mcp_server/calls/pipeline.py": "every journey goes through it; its order is tests/policy/test_decision.py",
    "mcp_server/compose.py": "no server in the tests starts without it",
    "mcp_server/guards/sandbox/bubblewrap.py": "tests/guards/processes/test_sandbox.py, in every sandbox there is",
    "mcp_server/guards/sandbox/landlock.py": "tests/guards/processes/test_sandbox.py, in every sandbox there is",
    "mcp_server/guards/search/ripgrep.py": "tests/guards/search/test_fallback.py compares both engines",
    "mcp_server/health.py": "tests/journeys/test_health.py",
    "mcp_server/packs.py": "tests/architecture/test_packs.py",
}
"""Modules whose test has another name. They count as without one: this says only where to look."""
COMMANDS: dict[str, str] = load_yaml((TESTS / "tables" / "cli.yaml").read_text())


def mirrored() -> dict[str, Path]:
    """Every module that should have a test of its name, and that test."""
    tests: dict[str, Path] = {}
    for path in modules():
        where = path.relative_to(HOUSE)
        inside = where.relative_to("mcp_server") if where.parts[0] == "mcp_server" else where
        if path.stem not in NO_TEST_BY_NAME and not ROOMS_BY_CONCEPT & set(inside.parts[:-1]):
            tests[str(where)] = TESTS / inside.with_name(f"test_{path.stem}.py")
    return tests


def test_three_modules_in_four_have_a_test_of_their_name() -> None:
    tests = mirrored()
    without = [module for module, test in tests.items() if not test.exists()]
    share = 1 - len(without) / len(tests)
    assert share >= SHARE, f"{share:.0%} of {len(tests)} modules; these have no test of their name: {without}"


def test_what_is_tested_elsewhere_is_said_only_where_it_is_so() -> None:
    tests = mirrored()
    assert [module for module in ELSEWHERE if module not in tests or tests[module].exists()] == []


def names_given(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_no_test_of_a_module_is_empty() -> None:
    def has_test(path: Path) -> bool:
        return any(name.startswith(("test_", "Test")) for node in parsed(path).body for name in names_given(node))

    assert [str(test) for test in mirrored().values() if test.exists() and not has_test(test)] == []


def words_typed(path: Path) -> set[str]:
    """The first words of every text in it."""
    texts = (node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant))
    return {text.split()[0] for text in texts if isinstance(text, str) and text.strip()}


def test_every_command_is_typed_by_the_test_that_the_table_names() -> None:
    (commands,) = [action for action in build_parser()._actions if action.choices is not None]
    assert sorted(COMMANDS) == sorted(commands.choices or ())
    assert [name for name, test in COMMANDS.items() if name not in words_typed(TESTS / test)] == []
