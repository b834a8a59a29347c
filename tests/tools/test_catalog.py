"""Is the catalogue of tools in order: complete, unique, honest about what each tool does, and portable?"""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from mcp_server.config.load import DATA, ConfigFiles, load_config_files
from mcp_server.model.menus import CARRIERS, META_TOOLS
from mcp_server.model.posture import Profile, Stage
from mcp_server.model.tools import READING, Effect, Schema, Tool
from tools.catalog import CATALOG

PORTABLE = {"type", "properties", "required", "additionalProperties"}


def catalog() -> tuple[Tool, ...]:
    return CATALOG


def outside() -> list[Tool]:
    return [tool for tool in catalog() if not tool.meta and tool.name not in CARRIERS]


def test_the_catalogue_and_the_menus_fit_together() -> None:
    library = load_config_files([DATA / "menus"], None, {tool.name: tool for tool in catalog()})
    assert isinstance(library, ConfigFiles), str(library)


def test_every_name_is_there_once() -> None:
    names = [tool.name for tool in catalog()]
    assert sorted(set(names)) == sorted(names)


def test_the_meta_tools_stand_in_their_order() -> None:
    assert tuple(tool.name for tool in catalog() if tool.name in META_TOOLS) == META_TOOLS
    assert tuple(tool.name for tool in catalog() if tool.name in CARRIERS) == CARRIERS
    assert all(tool.meta for tool in catalog() if tool.name in META_TOOLS)


def test_what_only_reads_says_so_and_what_says_so_only_reads() -> None:
    assert [
        tool.name for tool in outside() if tool.hints.read_only and tool.effect not in READING | {Effect.EXEC}
    ] == []
    assert [tool.name for tool in outside() if tool.hints.read_only and tool.hints.destructive] == []


def test_no_tool_but_the_meta_tools_runs_while_the_answer_is_handed_over() -> None:
    assert [tool.name for tool in outside() if Stage.DELIVERY_CHECK in tool.stages] == []


def test_what_runs_in_review_changes_nothing() -> None:
    reviewing = [tool for tool in outside() if tool.stages & {Stage.WARMUP, Stage.QA_REVIEW}]
    changing = {Effect.WRITE_LOCAL, Effect.DESTROY_LOCAL, Effect.VCS_LOCAL, Effect.REMOTE_WRITE}
    assert [tool.name for tool in reviewing if tool.effect in changing | {Effect.PRODUCTION_MUTATION}] == []


def test_the_restricted_profile_only_reads() -> None:
    restricted = [tool for tool in outside() if tool.profile is Profile.RESTRICTED]
    assert [tool.name for tool in restricted if not (tool.effect in READING or tool.hints.read_only)] == []


def test_every_tool_can_run_in_some_stage() -> None:
    assert [tool.name for tool in catalog() if not tool.stages] == []


def schemas() -> Iterator[tuple[str, Schema]]:
    for tool in catalog():
        yield tool.name, tool.arguments
        if tool.result is not None:
            yield f"{tool.name}'s result", tool.result


def test_the_schemas_are_plain_at_their_root() -> None:
    assert [name for name, schema in schemas() if set(schema) - PORTABLE - {"description", "title"}] == []
    assert [tool.name for tool in catalog() if tool.arguments.get("additionalProperties") is not False] == []


def test_every_argument_is_described() -> None:
    undescribed = [
        f"{tool.name}.{name}"
        for tool in catalog()
        for name, schema in tool.arguments.get("properties", {}).items()
        if not schema.get("description")
    ]
    assert undescribed == []


def test_a_rule_can_speak_about_the_argument_it_is_said_to() -> None:
    subjects = [(tool, tool.subject[0]) for tool in catalog() if tool.subject]
    assert [tool.name for tool, name in subjects if name not in tool.arguments.get("properties", {})] == []


def test_every_file_of_tools_is_in_the_catalogue() -> None:
    seen, rest = set[Path](), [DATA / "tools" / "catalog.py"]
    while rest:
        path = rest.pop()
        seen.add(path)
        rest += [file for file in imported(path) if file not in seen]
    written = {path for path in (DATA / "tools").rglob("*.py") if path.name != "__init__.py"}
    assert written - seen == set()


def test_every_tool_that_is_defined_is_in_the_catalogue() -> None:
    known = {id(tool) for tool in catalog()}
    missing = [
        f"`{name}` of tools/{path.parent.name}/definitions.py is not in the TOOLS of that file"
        for path in sorted((DATA / "tools").glob("*/definitions.py"))
        for name, value in vars(import_module(f"tools.{path.parent.name}.definitions")).items()
        if isinstance(value, Tool) and id(value) not in known
    ]
    assert missing == []


def test_every_tool_is_named_in_a_test() -> None:
    folder = Path(__file__).parents[1]
    said = "".join(path.read_text() for path in folder.rglob("*.py"))
    named = set(re.findall(r"""["'](\w+)["']""", said))
    assert [f"no test names `{tool.name}`" for tool in catalog() if tool.name not in named] == []


def imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "LazyFunction":
            names = [ast.literal_eval(node.args[0]).partition(":")[0]]
        else:
            continue
        for name in names:
            file = DATA.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("tools.") and file.exists():
                yield file
