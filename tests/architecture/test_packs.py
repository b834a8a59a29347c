"""Is the promise to other people's packs whole, and light? Every type they are handed has a name there."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator

from mcp_server import packs
from tests.architecture.test_rooms import HOUSE

FACE = HOUSE / "mcp_server" / "packs.py"
NOT_PROMISED = {
    "Hold": "why a run is paused is the pipeline's to act on",
    "Navigator": "moving through the menus is for the meta-tools",
    "Ordered": "what `Profile` is made of",
    "PathStep": "what a line of shell does to paths, for the tool that runs lines",
    "Relayed": "how a tool of a server behind menugate ends, and only such a one",
    "SecretNames": "the names of secrets are for `list_secrets`",
    "UpstreamAccess": "the servers behind menugate are for the tools that are made of what they offer",
    "Question": "made by the gate, never by a tool",
}
"""What is reached from a promised name and is none itself, and why."""
LOADED = """
import json, sys
before = set(sys.modules)
import mcp_server.packs
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported() -> list[str]:
    tree = ast.parse(FACE.read_text())
    return [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]


def definitions() -> dict[str, ast.AST]:
    """The classes of the model, and the types that have a name there."""
    found: dict[str, ast.AST] = {}
    for path in sorted((HOUSE / "mcp_server" / "model").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                found[node.target.id] = node.value
    return found


def mentioned(node: ast.AST) -> Iterator[str]:
    """The names in the types of fields, parameters and results."""
    for one in ast.walk(node):
        if isinstance(one, ast.ClassDef):
            parts = [*one.bases]
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]
            parts = [] if one.name.startswith("_") else [one.returns, *(arg.annotation for arg in given)]
        elif isinstance(one, ast.AnnAssign):
            parts = [one.annotation]
        else:
            continue
        yield from (name for part in parts if part is not None for name in names_in(part))
    if not isinstance(node, ast.ClassDef):
        yield from names_in(node)


def names_in(annotation: ast.AST) -> Iterator[str]:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        return  # its texts are no names
    if isinstance(annotation, ast.Name):
        yield annotation.id
    elif isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) and annotation.value.isprintable():
        yield from names_in(ast.parse(annotation.value, mode="eval"))
    for one in ast.iter_child_nodes(annotation):
        yield from names_in(one)


def unnamed(promised: set[str]) -> set[str]:
    known = definitions()
    return {name for one in promised & known.keys() for name in mentioned(known[one]) if name in known} - promised


def test_everything_imported_there_is_promised_and_nothing_else() -> None:
    assert sorted(packs.__all__) == sorted(imported())
    assert len(set(packs.__all__)) == len(packs.__all__)


def test_whatever_a_pack_is_handed_it_can_name() -> None:
    assert unnamed(set(packs.__all__)) == set(NOT_PROMISED), "name it in mcp_server/packs.py, or say here why not"


def test_a_planted_gap_is_found() -> None:
    assert "Snapshot" in unnamed(set(packs.__all__) - {"Snapshot"})


def test_it_loads_the_model_alone() -> None:
    """In a fresh interpreter; a pack is imported at every start of a server."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=HOUSE, timeout=60
    )
    loaded: list[str] = json.loads(ran.stdout)
    ours = {name for name in loaded if name.partition(".")[0] == "mcp_server"}
    assert "mcp_server.model.tools" in ours
    assert {name for name in ours if not name.startswith("mcp_server.model")} == {"mcp_server", "mcp_server.packs"}
    may_load = {*sys.stdlib_module_names, "mcp_server", "msgspec", "typing_extensions"}
    assert [name for name in loaded if name.partition(".")[0] not in may_load] == []


def test_the_reference_has_every_name() -> None:
    page = (HOUSE / "docs" / "packs-reference.md").read_text()
    found = re.findall(r"^(?:class |def )?(\w+)(?=\(|:| =)", page, re.MULTILINE)
    assert [name for name in packs.__all__ if name not in found] == []
