"""Do grep and glob say what a model needs, and take what a model writes?"""

import json
import re
from pathlib import Path
from typing import Any, cast

import anyio
import jsonschema_rs
import pytest
from msgspec.structs import replace

from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.search.ripgrep_run import find_ripgrep
from mcp_server.guards.search.search import FileSearch
from mcp_server.guards.spill import Spill
from mcp_server.model.context import Context
from mcp_server.model.files import Search, SearchResult
from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Refusal
from mcp_server.model.tools import ACTING, REVIEWING, WARMUP, Effect
from tests.guards.search.ground import finder
from tests.tools.packs import tools_of
from tests.tools.workbench import Workbench, WorkbenchContext
from tools.search.definitions import GLOB, GREP


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for number in range(5):
        (tmp_path / "src" / f"m{number}.py").write_text("import os\n# one\nimport sys\n")
    (tmp_path / "readme.md").write_text("# Read me\n")
    return tmp_path


def call(root: Path, tool: str, **arguments: Any) -> str:
    found = {one.name: one for one in tools_of("search")}[tool]
    arguments = {name.replace("__", "-"): value for name, value in arguments.items()}
    jsonschema_rs.validate(dict(found.arguments), arguments)
    demand = found.get_demand(arguments)
    files: WorkspaceFiles = replace(Workbench(root).files, finder=finder(root, "ripgrep")).limit_to_grant(demand)
    ending = anyio.run(found.run, cast(Context, WorkbenchContext(files, demand)), arguments)
    assert isinstance(ending, Done)
    return ending.text


def note(text: str) -> str:
    return text.rsplit("\n", 1)[-1]


def test_paths_with_a_total(root: Path) -> None:
    assert call(root, "grep", pattern="import", path="src", head_limit=2) == (
        "src/m0.py\nsrc/m1.py\n\n"
        "[5 files, files that usually hold secrets left out; entries 1-2 of 5 are shown. "
        'Continue with grep {"pattern": "import", "path": "src", "head_limit": 2, "offset": 2}]'
    )


def test_lines(root: Path) -> None:
    text = call(root, "grep", pattern="sys", output_mode="content", glob="*0.py", __B=1)
    assert text.startswith("src/m0.py-2-# one\nsrc/m0.py:3:import sys\n\n[1 matching line in 1 file,")
    assert call(root, "grep", pattern="sys", output_mode="content", glob="*0.py", __n=False).startswith(
        "src/m0.py:import sys\n"
    )


def test_context_goes_before_its_halves(root: Path) -> None:
    text = call(root, "grep", pattern="one", output_mode="content", glob="*0.py", __C=1, __A=0, __B=0)
    assert text.count("src/m0.py") == 3
    text = call(root, "grep", pattern="one", output_mode="content", glob="*0.py", context=0, __C=1)
    assert text.count("src/m0.py") == 1


def test_counts(root: Path) -> None:
    text = call(root, "grep", pattern="import", output_mode="count")
    assert text.startswith("src/m0.py:2\n") and "[10 matching lines in 5 files" in text


@pytest.mark.parametrize("tool", ["grep", "glob"])
def test_following_the_next_call_leads_to_the_end(root: Path, tool: str) -> None:
    for number in range(300):
        (root / f"f{number:03}.txt").write_text("needle\n")
    seen: list[str] = []
    arguments: dict[str, Any] = {"pattern": "needle" if tool == "grep" else "f*.txt"}
    while True:
        text = call(root, tool, **arguments)
        seen += text.split("\n\n[")[0].split("\n")
        following = re.search(r"Continue with \w+ (\{.*\})\]$", text)
        if following is None:
            break
        arguments = json.loads(following[1])
    assert sorted(seen) == [f"f{number:03}.txt" for number in range(300)]


def test_nothing_found_says_where_and_what_was_not_searched(root: Path) -> None:
    text = call(root, "grep", pattern="nowhere", path="src", glob="*.py", type="py")
    assert text.startswith("Nothing matches `nowhere` in `src` among files of `*.py` and type `py`. Try it without")
    assert ".gitignore" in text and "secrets" in text
    assert call(root, "glob", pattern="*.rs").startswith("No file is named `*.rs`.")


def test_past_the_end(root: Path) -> None:
    assert "There are no entries from 11 on: only 5 were found" in call(root, "grep", pattern="import", offset=10)


def test_names(root: Path) -> None:
    assert call(root, "glob", pattern="*.md") == "readme.md\n\n[1 file, newest first.]"


class Slow:
    """A search that was stopped."""

    def grep(self, search: Search) -> SearchResult:
        return (
            SearchResult(("a",), 1, False, True, files=1) if search.pattern == "x" else SearchResult((), 0, False, True)
        )

    glob = grep


def test_a_stopped_search_says_so(root: Path) -> None:
    files = replace(Workbench(root).files, finder=Slow())
    for pattern, said in (("x", "[At least 1 file"), ("y", "so far: the search was stopped after 30 s")):
        ending = anyio.run(GREP.run, cast(Context, WorkbenchContext(files, GREP.get_demand({}))), {"pattern": pattern})
        assert isinstance(ending, Done) and said in ending.text and "stopped after 30 s" in ending.text


def test_a_file_of_secrets_is_the_persons_to_show(root: Path) -> None:
    (root / ".env").write_text("needle")
    assert "Nothing matches" in call(root, "grep", pattern="needle")
    asked = GREP.get_demand({"pattern": "x", "path": ".env"})
    assert asked.confirm and "`.env`" in asked.confirm
    assert GREP.get_demand({"pattern": "x", "path": "src"}).confirm is None
    files = replace(Workbench(root).files, finder=finder(root, "ripgrep"))
    with pytest.raises(Refusal):  # without the yes that goes with such a path
        files.limit_to_grant(GREP.get_demand({"pattern": "x"})).grep(Search("needle", path=".env"))
    assert files.limit_to_grant(asked).grep(Search("needle", path=".env")).total == 1


@pytest.mark.parametrize("tool", tools_of("search"), ids=lambda tool: tool.name)
def test_what_the_tools_say_of_themselves(tool: Any) -> None:
    assert (tool.profile, tool.effect, tool.stages) == (
        *(Profile.RESTRICTED, Effect.READ_LOCAL, WARMUP | ACTING | REVIEWING),
    )
    hints = tool.hints
    assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (True, False, True, False)
    assert len(tool.description.encode()) <= 1024
    assert tool.arguments["required"] == ["pattern"]
    assert all(schema["description"] for schema in tool.arguments["properties"].values())


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pattern": ""},
        {"pattern": "x", "-A": -1},
        {"pattern": "x", "output_mode": "lines"},
        {"pattern": "x", "C": 1},
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any]) -> None:
    assert not jsonschema_rs.is_valid(dict(GREP.arguments), arguments)


def test_names_of_arguments_models_know() -> None:
    assert set(GREP.arguments["properties"]) == {
        *("pattern", "path", "glob", "type", "output_mode", "-i", "-n", "-A", "-B", "-C", "context", "-o"),
        *("multiline", "head_limit", "offset"),
    }
    assert set(GLOB.arguments["properties"]) == {"pattern", "path", "offset"}


def test_the_rest_of_a_long_result_can_be_searched(root: Path) -> None:
    bench = Workbench(root)
    kept = Spill(root / ".menugate" / "spill").keep_text("one\nneedle\n", "bash")
    files = replace(bench.files, finder=FileSearch(bench.files.jail, (root / ".menugate",), find_ripgrep("", root)))
    found = files.grep(Search("needle", path=str(kept), want="content"))
    assert found.lines == (".menugate/spill/bash.txt:2:needle",)
    assert files.grep(Search("needle")).total == 0
