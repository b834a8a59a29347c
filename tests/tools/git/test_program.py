"""Does a hostile repository run anything, through any tool, at any profile?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.processes import Processes
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.tools import Effect
from tests.sizes import sample
from tests.tools.git.bare import Bare
from tests.tools.git.ground import TOOLS, GitWorkbench
from tests.tools.git.poison import CALLS, TABLE, Den
from tools.git import patch, program

PINNED_OFF = [row for row in TABLE if not row.get("contained")]
HELD = [row for row in TABLE if "held_by" in row]


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.fixture
def den(tmp_path: Path) -> Den:
    root = tmp_path / "work"
    root.mkdir()
    return Den(root, tmp_path / "outside")


@pytest.fixture
def bench(den: Den, opened: Callable[[Path], GitWorkbench]) -> GitWorkbench:
    return opened(den.root)


@pytest.mark.parametrize("row", TABLE, ids=names(TABLE))
def test_git_left_alone_would_run_it(den: Den, row: dict[str, Any]) -> None:
    den.fire(den.poisoned(row, "repo"), row)
    assert den.fired() == {row["name"]}


def test_no_option_is_missing(den: Den, bench: GitWorkbench) -> None:
    """Every poison and every tool, with nothing but options between git and the canary."""
    bench.bare = cast(Processes, Bare(den.root))
    for row in PINNED_OFF:
        den.poisoned(row, row["name"])
        for tool, arguments in CALLS:
            ending = bench.call(tool, repo_path=row["name"], **arguments)
            assert den.fired() == set(), (row["name"], tool)
            assert isinstance(ending, Done) or row.get("missing"), (row["name"], tool, ending)


@pytest.mark.parametrize("row", HELD, ids=names(HELD))
def test_without_its_option_it_would_run(
    den: Den, bench: GitWorkbench, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]
) -> None:
    held = row["held_by"]

    def kept(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word for word in words if word.partition("=")[0] not in held.get("pins", ()))

    monkeypatch.setattr(program, "PINNED", kept(program.PINNED))
    if "core.hooksPath" in held.get("pins", ()):
        monkeypatch.setattr(program, "HOOKS_OFF", "core.protectNTFS=true")
    left = {key: value for key, value in program.ENVIRONMENT.items() if key not in held.get("env", ())}
    monkeypatch.setattr(program, "ENVIRONMENT", left)
    formats = tuple(word for word in patch.FORMAT if word not in held.get("formats", ()))
    monkeypatch.setattr(patch, "FORMAT", formats)
    bench.bare = cast(Processes, Bare(den.root, tuple(held.get("words", ()))))
    den.poisoned(row, "repo")
    for tool, arguments in CALLS:
        bench.call(tool, repo_path="repo", **arguments)
        if tool == held["tool"]:
            break
    assert den.fired() == {row["name"]}


@pytest.mark.heavy
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("profile", list(Profile))
def test_nothing_gets_out_of_the_sandbox(den: Den, bench: GitWorkbench, profile: Profile, sandbox: str) -> None:
    """Every tool at every profile, over a repository with all that options hold and some with what they cannot."""
    if not bench.only(sandbox):
        pytest.skip(f"there is no {sandbox} here")
    folders: set[str] = set()
    for row in sorted(TABLE, key=lambda row: "submodule" not in row):
        if not {"signed", "missing", "included"} & row.keys():
            folders.add(den.poisoned(row, row.get("contained", "pinned")).name)
    for folder in dict.fromkeys(("pinned", *sample(sorted(folders - {"pinned"})))):
        for tool, arguments in CALLS:
            ending = bench.call(tool, profile, yes=True, repo_path=folder, **arguments)
            assert expected(ending, tool, profile, sandbox, pinned=folder == "pinned"), (folder, tool, ending)
    may = {row["name"] for row in TABLE if row.get("contained")}
    assert den.fired() <= may
    # Where the person wants no sandbox, a filter is a program like any other.
    assert profile is Profile.UNRESTRICTED or den.escaped() == set()


def expected(ending: Ending, tool: str, profile: Profile, sandbox: str, pinned: bool) -> bool:
    code = ending.code if isinstance(ending, Problem) else None
    if not profile.covers(TOOLS[tool].profile):
        return code is Code.PROFILE_TOO_LOW
    if pinned:
        return code is None
    # Landlock cannot keep a filter out of what git itself may write, so that there git changes nothing.
    refused = sandbox == "landlock" and profile is not Profile.UNRESTRICTED and TOOLS[tool].effect is Effect.VCS_LOCAL
    return code is Code.UNSAFE_REPOSITORY if refused else code in (None, Code.TOOL_FAILED)
