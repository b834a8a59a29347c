"""Does the house keep its order? Rooms import only rooms below them, and stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]

# Top to bottom. Rooms on one line are blind to each other.
ORDER: list[set[str]] = [
    {"mcp_server.cli"},
    {"mcp_server.compose"},
    {"mcp_server.house"},
    {"mcp_server.health"},
    {"mcp_server.gate"},
    {"mcp_server.person", "mcp_server.installation", "mcp_server.renewal"},
    {"mcp_server.watch", "mcp_server.merging"},
    {"mcp_server.law", "mcp_server.wire"},
    {"mcp_server.calls"},
    {"mcp_server.upstreams", "mcp_server.guards", "mcp_server.state", "mcp_server.library"},
    {"mcp_server.rules"},
    {"mcp_server.model"},
]
# What the operator may set is read once and handed down as one value.
SETTINGS = "mcp_server.settings"
SETTINGS_READERS = {
    f"mcp_server.{reader}"
    for reader in ("cli", "compose", "house", "gate", "health", "person", "law", "installation", "renewal")
}
PURE = {"mcp_server.model", "mcp_server.rules"}
NOT_PURE = {"mcp", "mcp_types", "yaml", "os", "time", "random", "secrets", "datetime", "asyncio", "anyio", "sqlite3"}
CEILINGS = {"module": 300, "function": 40, "parameters": 6, "room": 10}
# path or path:function -> why it may be over a ceiling. An exception that is no longer needed fails.
EXCEPTIONS: dict[str, str] = {
    "mcp_server/compose.py:connected": "where everything is wired; the reshape takes it apart",
    "mcp_server/guards/processes/starting.py": "one subject, how a command starts; the reshape gives it a room",
    "mcp_server/settings.py": "every setting in one value; the reshape moves where keys lie out of it",
    "mcp_server/settings.py:read": "one line a setting",
}


def modules() -> Iterator[Path]:
    for top in ("mcp_server", "tools"):
        yield from sorted((HOUSE / top).rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def room(name: str) -> str | None:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "mcp_server" and len(parts) > 1 else None


def level(name: str) -> int | None:
    return next((index for index, rooms in enumerate(ORDER) if name in rooms), None)


def breaches(name: str, tree: ast.AST) -> Iterator[str]:
    here = room(name)
    for target, line in imported(tree):
        there = room(target)
        if name.split(".")[0] == "tools":
            if there and there != "mcp_server.model":
                yield f"{name}:{line} tools speak to mcp_server.model alone, not to {there}"
        elif here in PURE and target.split(".")[0] in NOT_PURE:
            yield f"{name}:{line} {here} is pure and does not import {target.split('.')[0]}"
        elif here and target.split(".")[0] == "tools" and here != "mcp_server.law":
            yield f"{name}:{line} only the law knows the tools"
        elif there == SETTINGS:
            if here not in SETTINGS_READERS:
                yield f"{name}:{line} settings are handed down, not imported"
        elif here and there and here != there:
            mine, theirs = level(here), level(there)
            if theirs is not None and mine is not None and theirs <= mine:
                yield f"{name}:{line} {here} may not import {there}: it stands above it or beside it"


def test_every_folder_is_a_known_room() -> None:
    rooms = {name for names in ORDER for name in names} | {SETTINGS, "mcp_server.__init__", "mcp_server.__main__"}
    found = {f"mcp_server.{path.stem}" for path in (HOUSE / "mcp_server").iterdir() if path.name != "__pycache__"}
    assert found <= rooms, found - rooms


def test_rooms_import_downwards_only() -> None:
    assert [fault for path in modules() for fault in breaches(dotted(path), ast.parse(path.read_text()))] == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("mcp_server.rules.x", "import mcp_server.calls.pipeline"),
        ("mcp_server.guards.x", "from mcp_server.state.store import Store"),
        ("mcp_server.model.x", "import yaml"),
        ("mcp_server.rules.x", "import time"),
        ("tools.x", "from mcp_server.guards import files"),
        ("mcp_server.wire.x", "from tools import catalog"),
        ("mcp_server.state.x", "from mcp_server.settings import Settings"),
    ],
)
def test_a_planted_upward_import_is_found(name: str, source: str) -> None:
    assert list(breaches(name, ast.parse(source)))


def oversized() -> Iterator[tuple[str, str]]:
    for path in modules():
        text, where = path.read_text(), str(path.relative_to(HOUSE))
        if text.count("\n") > CEILINGS["module"]:
            yield where, f"{text.count(chr(10))} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([one for one in arguments if one.arg not in ("self", "cls")])
                if length > CEILINGS["function"]:
                    yield f"{where}:{node.name}", f"{length} lines"
                if count > CEILINGS["parameters"]:
                    yield f"{where}:{node.name}", f"{count} parameters"
    for folder in {path.parent for path in modules()}:
        count = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        if folder.parent.name == "mcp_server" and count > CEILINGS["room"]:
            yield str(folder.relative_to(HOUSE)), f"{count} modules"


def test_nothing_grows_past_its_ceiling_unexplained() -> None:
    found = dict(oversized())
    assert {key: value for key, value in found.items() if key not in EXCEPTIONS} == {}
    assert [key for key in EXCEPTIONS if key not in found] == [], "stale exceptions"


def test_no_module_is_named_after_nothing() -> None:
    empty = {
        "utils",
        "util",
        "helpers",
        "helper",
        "common",
        "misc",
        "base",
        "manager",
        "service",
        "handler",
        "handlers",
    }
    assert [str(path) for path in modules() if path.stem in empty] == []


def test_every_module_says_what_it_answers() -> None:
    silent = [str(path) for path in modules() if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def test_the_environment_is_read_in_settings_alone() -> None:
    readers = [
        str(path.relative_to(HOUSE))
        for path in modules()
        if "os.environ" in path.read_text() or "os.getenv" in path.read_text()
    ]
    assert readers in ([], ["mcp_server/settings.py"])
