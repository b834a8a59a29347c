"""Does a server that only lists its tools load what they are, and nothing of what they do?"""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from mcp_server.config.load import DATA
from mcp_server.model.tools import LazyFunction, Tool
from tools.catalog import CATALOG

# What a list takes: the words tools are made of, the catalogue, every pack's offers, and the wording of questions.
MODEL = {"mcp_server", "mcp_server.model"} | {
    f"mcp_server.model.{name}" for name in ("posture", "protected", "schema", "text", "tools")
}
BESIDE = {"tools", "tools.catalog"}
# Prints every module that is loaded after the import, with those of its classes that are structs or dataclasses.
LOADED = """
import dataclasses, json, msgspec, sys
before = set(sys.modules)
import {}
new = {{name: vars(module) for name, module in sys.modules.items() if name not in before}}
is_data = lambda one: isinstance(one, type) and (issubclass(one, msgspec.Struct) or dataclasses.is_dataclass(one))
own = lambda name, one: is_data(one) and one.__module__ == name
print(json.dumps({{name: [one.__name__ for one in held.values() if own(name, one)] for name, held in new.items()}}))
"""

OFFERS = ("definitions", "changing")

EMPTY_TEXTS = {("write_to_shell", "content")}
"""Arguments that may be left out, and of which an empty text means something else than none."""


def loaded(*names: str) -> dict[str, list[str]]:
    """In a fresh interpreter, without what this one's site brings along."""
    command = [sys.executable, "-c", LOADED.format(", ".join(names))]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=DATA, timeout=60)
    return json.loads(ran.stdout)


def offers(name: str) -> bool:
    """Is this the module, or the folder, in which a pack says what it offers; or the pack itself?"""
    pack, *rest = name.split(".")[1:]
    return rest[0] in OFFERS if rest else (DATA / "tools" / pack).is_dir()


def strangers(modules: Iterable[str]) -> Iterator[str]:
    for name in modules:
        top = name.partition(".")[0]
        if top == "tools":
            if name not in BESIDE and not offers(name):
                yield f"{name} is work, which is for the first call"
        elif top == "mcp_server":
            if name not in MODEL:
                yield f"{name} is not needed to list tools"
        elif top not in sys.stdlib_module_names:
            yield f"{name} is a third party's"


def test_a_list_loads_what_is_offered_and_no_more() -> None:
    found = loaded("tools.catalog")
    assert list(strangers(found)) == []
    assert {name: held for name, held in found.items() if name.startswith("tools.") and held} == {}
    assert {"tools.files.definitions", "tools.git.definitions"} <= found.keys()


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ("tools.git.porcelain", "tools.git.porcelain is work"),
        ("tools.single_test", "tools.single_test is work"),
        ("tools.shell.classify", "tools.shell.classify is work"),
        ("mcp_server.model.context", "mcp_server.model.context is not needed"),
        ("anyio", "anyio is a third party's"),
    ],
)
def test_planted_work_at_start_is_found(planted: str, told: str) -> None:
    found = loaded("tools.catalog", planted)
    assert any(fault.startswith(told) for fault in strangers(found))
    assert planted != "tools.git.porcelain" or found[planted]


def unkept(tool: Tool) -> Iterator[str]:
    """What is wrong with the names behind which a tool's work is looked for."""
    if not isinstance(tool.run, LazyFunction):
        yield f"{tool.name}: its work is there at start"
    for what, given, count in (("run", tool.run, 2), ("demand", tool.demand, 1)):
        if not isinstance(given, LazyFunction):
            continue
        try:
            found = given.load_function()
        except (ImportError, AttributeError) as fault:
            yield f"{tool.name}: {fault}"
            continue
        if inspect.iscoroutinefunction(found) != (what == "run"):
            yield f"{tool.name}: `{given.where}` is no function that can {what}"
        elif len(inspect.signature(found).parameters) != count:
            yield f"{tool.name}: `{given.where}` does not take what it is given"


@pytest.mark.parametrize("tool", CATALOG, ids=lambda tool: tool.name)
def test_the_work_is_where_the_tool_says(tool: Tool) -> None:
    assert list(unkept(tool)) == []


async def at_once(_ctx: object, _args: object) -> None:
    pass


@pytest.mark.parametrize(
    ("run", "demand", "told"),
    [
        (at_once, None, "its work is there at start"),
        (LazyFunction("tools.files.edit:edits"), None, "has no attribute 'edits'"),
        (LazyFunction("tools.files.edits:edit"), None, "No module named"),
        (LazyFunction("tools.files.edit:overwrite_file"), None, "no function that can run"),
        (LazyFunction("tools.files.edit:EXACT_MATCH_HINT"), None, "no function that can run"),
        (LazyFunction("tools.git.revisions:read_head"), None, "does not take what it is given"),
        (LazyFunction("tools.files.edit:edit"), LazyFunction("tools.files.edit:edit"), "no function that can demand"),
        (LazyFunction("tools.files.edit:edit"), LazyFunction("tools.files.edit:halve"), "has no attribute 'halve'"),
    ],
)
def test_a_planted_wrong_name_is_found(run: LazyFunction, demand: LazyFunction | None, told: str) -> None:
    (fault,) = unkept(replace(CATALOG[0], run=run, demand=demand))
    assert told in fault


@pytest.mark.parametrize("tool", CATALOG, ids=lambda tool: tool.name)
def test_whoever_adds_an_optional_text_says_whether_an_empty_one_means_something(tool: Tool) -> None:
    required = tool.arguments.get("required", ())
    for name, schema in tool.arguments["properties"].items():
        if schema.get("type") == "string" and name not in required and "enum" not in schema:
            marked = schema.get("minLength", 0) > 0
            assert marked is not ((tool.name, name) in EMPTY_TEXTS), f"{tool.name} {name}"
