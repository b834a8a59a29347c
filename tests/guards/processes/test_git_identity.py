"""Is the person's git asked who signs, and does a repository have no say in it?"""

import os
import subprocess
from pathlib import Path

import pytest

from mcp_server.guards.processes.git_identity import find_hooks_folder, find_ignore_file, read_signature
from mcp_server.guards.sandbox.access import HostPaths

PATH = os.environ.get("PATH", os.defpath)


def host(home: Path, search_path: str = PATH) -> HostPaths:
    return HostPaths(home.parent / "work", home, search_path=search_path)


@pytest.fixture
def repository(tmp_path: Path) -> str:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    return str(work / ".git")


def configure(home: Path, text: str) -> None:
    (home / ".gitconfig").write_text(text)


def test_nobody_signs_who_was_not_named(home: Path, repository: str) -> None:
    assert read_signature(host(home), repository) is None
    configure(home, "[user]\n\tname = Ada\n")
    assert read_signature(host(home), repository) is None


def test_the_person_signs_and_the_repository_may_name_another(home: Path, repository: str) -> None:
    configure(home, "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n")
    ada = ("Ada Lovelace", "ada@example.org")
    assert read_signature(host(home), repository) == (ada, ada)
    subprocess.run(["git", f"--git-dir={repository}", "config", "user.name", "Repo"], check=True)
    found = read_signature(host(home), repository)
    assert found is not None
    assert found[0] == ("Repo", "ada@example.org")


def test_the_persons_ignore_file_is_the_persons(home: Path, repository: str, tmp_path: Path) -> None:
    assert find_ignore_file(host(home), repository) == ""
    usual = home / ".config" / "git" / "ignore"
    usual.parent.mkdir(parents=True)
    usual.write_text("*.swp\n")
    assert find_ignore_file(host(home), repository) == str(usual)
    subprocess.run(["git", f"--git-dir={repository}", "config", "core.excludesFile", "/etc/passwd"], check=True)
    assert find_ignore_file(host(home), repository) == str(usual)
    own = tmp_path / "mine"
    own.write_text("*.log\n")
    configure(home, f"[core]\n\texcludesFile = {own}\n")
    assert find_ignore_file(host(home), repository) == str(own)
    own.write_text("")
    assert find_ignore_file(host(home), repository) == ""


def test_hooks_of_a_repository_are_not_the_persons(home: Path, repository: str) -> None:
    subprocess.run(["git", f"--git-dir={repository}", "config", "core.hooksPath", "/evil"], check=True)
    assert find_hooks_folder(host(home), repository) == ""
    configure(home, "[core]\n\thooksPath = ~/hooks\n")
    assert find_hooks_folder(host(home), repository) == str(home / "hooks")


def test_without_git_nothing_is_known(home: Path, repository: str, tmp_path: Path) -> None:
    assert read_signature(host(home, str(tmp_path)), repository) is None
    assert find_hooks_folder(host(home, "relative:."), repository) == ""


def test_a_git_that_a_command_planted_is_not_run(home: Path, repository: str) -> None:
    """An activated environment of the project puts a folder of the workspace first on the search path."""
    work = Path(repository).parent
    planted, ran, link = work / ".venv" / "bin" / "git", work / "ran", home / "bin"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {ran}\n")
    planted.chmod(0o755)
    link.symlink_to(planted.parent)
    configure(home, "[user]\n\tname = Ada\n\temail = ada@example.org\n")
    for folder in (planted.parent, link):
        paths = HostPaths(work, home, search_path=f"{folder}{os.pathsep}{PATH}")
        assert read_signature(paths, repository) == (("Ada", "ada@example.org"),) * 2
    assert not ran.exists()
