"""N2: a predicate about a path was passed by any other spelling of the same path."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

ERAS = ("legacy", "2026-07-28")
RULES = """
rules:
  deny:
    - 'Write(file_path eq "docs/secret.md")'
    - 'Edit(file_path regex "^docs/")'
    - 'Read(file_path in ["docs/secret.md"])'
    - 'fs_move(destination eq "docs/secret.md")'
    - 'fs_move(source contains "docs/secret")'
    - 'bash(exec_dir eq "docs")'
    - 'git_add(files contains "docs/secret.md")'
    - 'glob(path neq "src")'
"""
SECRET = (
    "docs/secret.md",
    "src/../docs/secret.md",
    "./docs/secret.md",
    "docs//secret.md",
    "docs/./secret.md",
    "docs/secret.md/",
    "link/secret.md",
    "src/inside/../../docs/secret.md",
    "alias.md",
)


@pytest.fixture
def ground(workspace: Path) -> Path:
    (workspace / "docs").mkdir()
    (workspace / "src" / "inside").mkdir(parents=True)
    (workspace / "docs" / "secret.md").write_text("the secret")
    (workspace / "src" / "open.md").write_text("open")
    (workspace / "link").symlink_to("docs")
    (workspace / "alias.md").symlink_to("docs/secret.md")
    return workspace


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return str(path)


def spellings(workspace: Path, path: Sequence[str] = SECRET) -> list[str]:
    whole = [f"{workspace}/docs/secret.md", f"{workspace}//docs/secret.md", f"{workspace}/src/../docs/secret.md"]
    return [*path, *whole, f"{workspace}/../{workspace.name}/docs/secret.md"]


def said(one: Pipe, tool: str, mode: str, **arguments: object) -> str:
    return one.call("menu_call", tool=tool, arguments=arguments, mode=mode)["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
def test_no_spelling_of_a_path_passes_a_predicate(ground: Path, home: Path, config: str, era: str) -> None:
    with pipe(ground, home, "--config", config, "--profile", "trusted") as one:
        one.hello("mcp", era)
        for path in spellings(ground):
            for tool, mode, arguments in [
                ("Write", "swe", {"file_path": path, "content": "overwritten"}),
                ("Edit", "swe", {"file_path": path, "old_string": "the", "new_string": "a"}),
                ("Read", "swe", {"file_path": path}),
                ("fs_move", "data", {"source": "src/open.md", "destination": path}),
                ("fs_move", "data", {"source": path, "destination": "src/taken.md"}),
            ]:
                text = said(one, tool, mode, **arguments)
                assert text.startswith("Error RULE_DENIED"), (tool, path, text)
                assert "the secret" not in text
    assert (ground / "docs" / "secret.md").read_text() == "the secret"
    assert (ground / "src" / "open.md").exists()


@pytest.mark.parametrize("era", ERAS)
def test_by_its_own_name_and_by_a_reading_carrier_as_well(ground: Path, home: Path, config: str, era: str) -> None:
    with pipe(ground, home, "--config", config, "--mode", "swe") as one:
        one.hello("opencode", era)
        for path in spellings(ground):
            for answer in (
                one.call("Write", file_path=path, content="overwritten"),
                one.call("menu_read", tool="Read", arguments={"file_path": path}),
            ):
                assert answer["content"][0]["text"].startswith("Error RULE_DENIED"), path
    assert (ground / "docs" / "secret.md").read_text() == "the secret"


def test_the_folder_a_command_runs_in_is_a_path_too(ground: Path, home: Path, config: str) -> None:
    with pipe(ground, home, "--config", config) as one:
        one.hello("mcp")
        for folder in ("docs", "./docs/", "src/../docs", "link", f"{ground}/docs", f"{ground}//src/../docs"):
            text = said(one, "bash", "swe", command="pwd", exec_dir=folder)
            assert text.startswith("Error RULE_DENIED"), (folder, text)
        assert "Error RULE_DENIED" not in said(one, "bash", "swe", command="pwd", exec_dir="src")


def test_a_path_relative_to_another_argument_is_the_path_it_means(ground: Path, home: Path, config: str) -> None:
    with pipe(ground, home, "--config", config, "--profile", "trusted") as one:
        one.hello("mcp")
        for folder, path in [
            (".", "docs/secret.md"),
            ("docs", "secret.md"),
            ("src", "../docs/secret.md"),
            ("docs", "./secret.md"),
            (f"{ground}/docs", "secret.md"),
            ("docs", f"{ground}/docs/secret.md"),
        ]:
            text = said(one, "git_add", "git", repo_path=folder, files=["x", path])
            assert text.startswith("Error RULE_DENIED"), (folder, path, text)


def test_what_is_left_out_means_the_workspace(ground: Path, home: Path, config: str) -> None:
    with pipe(ground, home, "--config", config) as one:
        one.hello("mcp")
        for arguments in ({"pattern": "*"}, {"pattern": "*", "path": "."}, {"pattern": "*", "path": "src/.."}):
            assert said(one, "glob", "swe", **arguments).startswith("Error RULE_DENIED"), arguments
        for path in ("src", "./src/", "docs/../src", f"{ground}/src"):
            assert "RULE_DENIED" not in said(one, "glob", "swe", pattern="*", path=path), path


def test_what_is_allowed_by_name_is_allowed_only_where_the_path_leads_there(
    ground: Path, home: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "allow.yaml"
    rules.write_text("work_mode: chat\nrules:\n  allow: ['Write(file_path regex \"^src/\")']\n")
    (ground / "src" / "out").symlink_to("../docs")
    with pipe(ground, home, "--config", str(rules)) as one:
        one.hello("mcp")
        said(one, "Read", "swe", file_path="docs/secret.md")
        for path in ("src/../docs/secret.md", "src/out/secret.md", "docs/../src/out/secret.md", "docs/secret.md"):
            text = said(one, "Write", "swe", file_path=path, content="overwritten")
            assert text.startswith("Error APPROVAL_REQUIRED"), (path, text)
        assert "Error" not in said(one, "Write", "swe", file_path="./docs/../src/new.md", content="x")
    assert (ground / "docs" / "secret.md").read_text() == "the secret"


def test_explain_judges_every_spelling_as_the_call_does(ground: Path, home: Path, config: str) -> None:
    for path in spellings(ground):
        arguments = json.dumps({"file_path": path, "content": ""})
        answer = json.loads(typed(ground, home, "explain", "Write", arguments, "--json", "--config", config).out)
        assert (answer["code"], answer["rule"]["source"]) == ("RULE_DENIED", f"{config}:4"), path


def test_a_rule_that_no_spelling_could_meet_is_a_fault(ground: Path, home: Path, tmp_path: Path) -> None:
    rules = tmp_path / "dead.yaml"
    rules.write_text(f"rules:\n  deny: ['Write(file_path regex \"^{ground}/docs/\")']\n")
    checked = typed(ground, home, "check", "--config", str(rules))
    assert checked.code == 1
    assert "compared relative to it" in checked.out
