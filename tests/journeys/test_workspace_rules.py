"""Do the operator's rules for one workspace apply there and nowhere else, through every command and while a server
runs?"""

import json
from pathlib import Path

import anyio
import pytest

from tests.clients.pipe import pipe
from tests.clients.served import PATIENCE
from tests.clients.typed import Typed, typed

SECTION = """# mine
work_mode: chat
rules:
  deny: [Read(secret/**)]
workspaces:
  {work}:
    rules:
      deny: ["Read(notes.md)"]
      allow: ["Write(out.txt)"]
"""


@pytest.fixture
def config(tmp_path: Path, workspace: Path) -> Path:
    path = tmp_path / "menugate.yaml"
    path.write_text(SECTION.format(work=workspace))
    return path


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    other = tmp_path / "work2"
    other.mkdir()
    (other / "notes.md").write_text("second\n")
    return other


def explain(work: Path, home: Path, config: Path, tool: str, **arguments: str) -> Typed:
    return typed(work, home, "explain", tool, json.dumps(arguments), "--json", "--config", str(config))


def test_they_hold_in_their_workspace_alone(workspace: Path, elsewhere: Path, home: Path, config: Path) -> None:
    for work, denied in ((workspace, True), (elsewhere, False)):
        with pipe(work, home, "--config", str(config)) as line:
            line.hello("opencode")
            line.call("menu_enter", mode="swe")
            assert line.call("Read", file_path="notes.md")["isError"] is denied
            written = line.call("Write", file_path="out.txt", content="x")
            assert written["isError"] is not denied, "at `chat` it asks, unless a rule allows it"
            line.bye()
        assert (work / "out.txt").exists() is denied


def test_commands_show_them_with_their_line(workspace: Path, elsewhere: Path, home: Path, config: Path) -> None:
    answer = json.loads(explain(workspace, home, config, "Read", file_path="notes.md").out)
    assert answer["rule"] == {"kind": "deny", "text": "Read(notes.md)", "source": f"{config}:8"}
    assert json.loads(explain(elsewhere, home, config, "Read", file_path="notes.md").out)["rule"] is None
    listed = typed(workspace, home, "rules", "list", "--config", str(config)).out
    assert "Write(out.txt)" in listed and f"{config.name}:9" in listed
    assert "Write(out.txt)" not in typed(elsewhere, home, "rules", "list", "--config", str(config)).out
    assert typed(workspace, home, "check", "--config", str(config)).code == 0


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ("workspaces: [a]", ":1"),
        ("workspaces:\n  relative: {rules: {deny: [Read]}}", ":2"),
        ("workspaces:\n  WORK: {rule: {}}", "there is no key `rule` here"),
        ("workspaces:\n  WORK:\n    rules:\n      deny: [Raed]", ":4"),
        ("workspaces:\n  LINK:\n    rules: {deny: [Read]}", "a link leads to this workspace"),
        ("workspaces:\n  WORK:\n    profile: trusted", "there is no key `profile` here"),
    ],
)
def test_a_fault_is_named_with_file_and_line(
    workspace: Path, home: Path, config: Path, section: str, fault: str
) -> None:
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    config.write_text(section.replace("WORK", str(workspace)).replace("LINK", str(link)) + "\n")
    done = typed(workspace, home, "check", "--config", str(config))
    assert done.code == 1
    said = " ".join((done.out + done.err).split())
    assert fault in said and config.name in said, said


def test_a_workspace_cannot_write_them_itself(workspace: Path, home: Path) -> None:
    (workspace / "menugate.yaml").write_text(SECTION.format(work=workspace))
    done = typed(workspace, home, "check")
    assert done.code == 1 and "only the operator may set `workspaces`" in " ".join((done.out + done.err).split())


def test_a_running_server_takes_them_over(workspace: Path, home: Path, config: Path) -> None:
    whole = config.read_text()
    config.write_text("work_mode: chat\n")
    with pipe(workspace, home, "--config", str(config)) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        assert line.call("Write", file_path="out.txt", content="x")["isError"]
        config.write_text(whole)
        assert line.call("Read", file_path="notes.md")["isError"], "what forbids applies at once"

        async def write_until_allowed() -> None:
            with anyio.fail_after(PATIENCE):
                while line.call("Write", file_path="out.txt", content="x")["isError"]:
                    await anyio.sleep(0.1)

        anyio.run(write_until_allowed)
        line.bye()
