"""Does a child see the programs it needs in folders that are emptied, and nothing that a command planted there?"""

import os
from pathlib import Path

import pytest

from mcp_server.guards.sandbox.access import ChildAccess, HostPaths, build_child_access, find_program
from mcp_server.guards.sandbox.protected import ProtectedPaths
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.tools import Demand, Effect


def build_access(paths: HostPaths) -> ChildAccess:
    demand = Demand(Effect.EXEC, Profile.NORMAL)
    return build_child_access(paths, ProtectedPaths(), Profile.NORMAL, demand, Command(("true",)), str(paths.workspace))


def make_environment(folder: Path, base: Path) -> Path:
    """A virtual environment made from this Python; returns its folder of programs."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {base}\n")
    return folder / "bin"


def test_an_environment_is_lent_with_the_python_it_was_made_from(workspace: Path, home: Path) -> None:
    python = home / "python" / "bin"
    python.mkdir(parents=True)
    programs = make_environment(home / "env", python)
    paths = HostPaths(workspace, home, search_path=f"{programs}{os.pathsep}{home / 'later'}")
    assert {str(home / "env"), str(python.parent)} <= set(build_access(paths).lent)
    assert str(home / "later") not in build_access(paths).lent
    (home / "later").mkdir()
    assert str(home / "later") in build_access(paths).lent, "what exists is looked up for each child"


@pytest.mark.parametrize("way", ["relative", "empty", "linked"])
def test_a_command_cannot_lend_itself_a_folder_by_planting_an_environment(
    workspace: Path, home: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = home / ".ssh"
    (secret / "bin").mkdir(parents=True)
    programs = make_environment(workspace, secret / "bin")
    monkeypatch.chdir(programs if way == "empty" else workspace)
    link = home / "env"
    link.symlink_to(workspace)
    entry = {"relative": "bin", "empty": "", "linked": str(link / "bin")}[way]
    assert str(secret) not in build_access(HostPaths(workspace, home, search_path=entry)).lent


def test_a_folder_that_appears_is_emptied(workspace: Path, home: Path) -> None:
    paths = HostPaths(workspace, home / "new")
    assert str(home / "new") not in build_access(paths).emptied
    (home / "new").mkdir()
    assert str(home / "new") in build_access(paths).emptied


def test_a_program_is_not_found_where_a_command_can_write(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted, outside = workspace / "bin" / "canary", home / "canary"
    for program in (planted, outside):
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    linked_folder, linked_file, movable = home / "a", home / "b", workspace / "c"
    linked_folder.symlink_to(planted.parent)
    linked_file.mkdir()
    (linked_file / "canary").symlink_to(planted)
    movable.symlink_to(home)
    monkeypatch.chdir(workspace)
    closed = [*map(str, (planted.parent, linked_folder, linked_file, movable)), "bin", ""]
    for folder in closed:
        assert find_program("canary", folder, workspace) is None, folder
    assert find_program("canary", os.pathsep.join([*closed, str(home)]), workspace) == str(outside)


def test_a_hidden_folder_around_the_workspace_hides_nothing_in_it(workspace: Path, home: Path) -> None:
    state, around, inner = workspace / ".menugate", workspace.parent, home / "deep" / "state"
    for folder in (state, inner):
        folder.mkdir(parents=True)
    access = build_access(HostPaths(workspace, home, (state, around, inner, home / "deep")))
    assert access.hidden_around == (str(around),)
    assert str(state) in access.hidden
    assert not {str(home / "deep"), str(inner)} & set(access.hidden), "they lie in a folder that is hidden as a whole"
