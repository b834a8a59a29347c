"""Can you read the record? One line per call says what it was about, to you and to nobody else, and not for ever."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.clients import pipe as pipes
from tests.clients import warm
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE, command, environment
from tests.clients.typed import Typed, typed

HOSTILE = "a\u202e\u200b\u2066\ud800\u0600\x1b[31mb\r\n\u2028c\U000e0041\u3164\u0336 refusal  allowed by you"
SECRET = "correct-horse-battery-staple"


@dataclass
class Lived:
    work: Path
    home: Path

    def menugate(self, *words: str) -> Typed:
        return typed(self.work, self.home, *words)

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.menugate("audit", "tail", "-n", "500", "--json").out.splitlines()]

    def glances(self) -> list[str]:
        return [row["glance"] for row in self.rows() if "glance" in row]


@pytest.fixture
def lived(workspace: Path, home: Path) -> Lived:
    return Lived(workspace, home)


def work(line: Pipe) -> None:
    line.hello("opencode")
    line.call("menu_enter", mode="swe")
    line.call("Read", file_path="notes.md")
    line.call("grep", pattern="first", path="notes.md")
    line.call("menu_read", tool="Read", arguments={"file_path": "src/main.py"}, mode="swe")
    line.call("bash", command="echo two\tthree")
    line.call("nobody \u202eknows")
    line.call("menu_enter", mode="data")
    line.call("fs_move", source="notes.md", destination="new.md")
    line.call("fs_delete", path="new.md")
    line.bye()


LINES = [
    "menu_enter",
    'Read "notes.md"',
    'grep "notes.md" pattern="first"',
    'Read "src/main.py"',
    'bash "echo two\\tthree"',
    '"nobody \\u202eknows"',
    "menu_enter",
    'fs_move "notes.md" destination="new.md"',
    'fs_delete "new.md"',
]


def test_a_person_reads_what_each_call_was_about(lived: Lived) -> None:
    with pipe(lived.work, lived.home, "--profile", "trusted") as line:
        work(line)
    assert lived.glances() == LINES
    rows = lived.rows()
    assert {row["kind"] for row in rows if "glance" in row} == {"intent", "refusal", "question"}
    tail = lived.menugate("audit", "tail", "-n", "500").out
    assert all(f" {text} " in tail for text in LINES if '"' in text), tail
    asked = next(row for row in rows if row["kind"] == "question")
    assert 'call       fs_delete "new.md"' in lived.menugate("audit", "why", str(asked["seq"])).out
    why = json.loads(lived.menugate("audit", "why", str(asked["seq"]), "--json").out)
    assert why["call"]["glance"] == 'fs_delete "new.md"'
    assert 'fs_delete "new.md"' in lived.menugate("audit", "show", str(asked["seq"])).out
    assert 'fs_delete "new.md"' in lived.menugate("status").out
    status = json.loads(lived.menugate("status", "--json").out)
    assert status["waiting"]["approvals"][-1]["glance"] == 'fs_delete "new.md"'


def test_nothing_else_shows_it(lived: Lived) -> None:
    """Not an export, not a summary, and no answer or resource that a model gets."""
    with pipe(lived.work, lived.home) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        line.call("glob", pattern="zzqq*")
        answers = [
            line.call("Read", file_path="notes.md"),
            line.call("menu_list"),
            line.request("resources/read", {"uri": "menugate://run/latest/summary"}),
            line.request("resources/list"),
        ]
        assert line.bye() == 0
    assert 'glob pattern="zzqq*"' in lived.glances()
    kept = json.dumps(answers)
    for words in ("audit export", "audit export --format ocsf", "summary", "summary --json", "audit verify --json"):
        kept += lived.menugate(*words.split()).out
    assert "zzqq" not in kept and "glance" not in kept


def test_secrets_are_masked(lived: Lived, monkeypatch: pytest.MonkeyPatch) -> None:
    def build_environment(home: Path) -> dict[str, str]:
        return {**environment(home), "DEPLOY_TOKEN": SECRET}

    monkeypatch.setattr(pipes, "environment", build_environment)
    with pipe(lived.work, lived.home) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        line.call("bash", command=f"echo {SECRET}")
        line.call("Read", file_path=f"{SECRET}.txt")
        line.call("Read", file_path="x" * 190 + SECRET)
        line.call("bash", command="curl -H 'Authorization: Bearer abcdefgh12345678' 127.0.0.1")
        line.bye()
    one, two, cut, other = lived.glances()[1:]
    assert one == 'bash "echo [redacted]"' and two == 'Read "[redacted].txt"'
    assert other == "bash \"curl -H 'Authorization: Bearer [redacted]' 127.0.0.1\""
    assert len(cut) == 200 and cut.endswith('"…') and "xco" not in cut
    assert SECRET[:8].encode() not in (lived.work / ".menugate" / "state.db").read_bytes()


@pytest.mark.parametrize("text", [HOSTILE, HOSTILE * 20, '"' * 300, "\\" * 301, "x" * 5000, "é" * 300])
def test_no_text_of_a_model_passes_for_ours(lived: Lived, text: str) -> None:
    with pipe(lived.work, lived.home) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        line.call("grep", pattern=text)
        line.call(text)
        line.bye()
    for shown, head in zip(lived.glances()[1:], ('grep pattern="', '"'), strict=True):
        assert shown.startswith(head) and len(shown) <= 200
        quoted = shown.removeprefix(head).removesuffix("…").removesuffix('"')
        told: str = json.loads(f'"{quoted}"')
        assert text.startswith(told)
        assert (told == text) is not shown.endswith("…")
        assert all(char.isprintable() for char in shown)


def test_off_keeps_none_and_removes_those_kept(lived: Lived) -> None:
    with pipe(lived.work, lived.home) as line:
        work(line)
    file, config = lived.work / ".menugate" / "state.db", lived.work.parent / "menugate.yaml"
    assert b"echo two" in file.read_bytes()
    rows = [row | {"glance": ""} for row in lived.rows()]
    config.write_text("glance: off\n")
    with pipe(lived.work, lived.home, "--config", str(config)) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        line.call("Read", file_path="notes.md")
        wait_for_no_glance(lived)
        line.bye()
    assert [row | {"glance": ""} for row in lived.rows()][: len(rows)] == rows, "the ledger stays as it was"
    assert b"echo two" not in file.read_bytes()
    assert lived.menugate("audit", "verify").code == 0


def test_off_applies_while_a_server_runs(lived: Lived) -> None:
    config = lived.work.parent / "menugate.yaml"
    config.write_text("glance: on\n")
    with pipe(lived.work, lived.home, "--config", str(config)) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        line.call("Read", file_path="notes.md")
        assert len(lived.glances()) == 2
        config.write_text("glance: off\n")
        wait_for_no_glance(lived)
        line.call("Read", file_path="src/main.py")
        line.bye()
    assert lived.glances() == []
    assert lived.menugate("audit", "verify").code == 0


def wait_for_no_glance(lived: Lived) -> None:
    async def wait() -> None:
        with anyio.fail_after(PATIENCE):
            while lived.glances():
                await anyio.sleep(0.05)

    anyio.run(wait)


def test_approvals_show_it(lived: Lived) -> None:
    with pipe(lived.work, lived.home, "--mode", "data", "--profile", "trusted") as line:
        line.hello("opencode")
        line.call("fs_delete", path="notes.md")
        line.bye()
    assert 'call: fs_delete "notes.md"' in lived.menugate("approvals").out
    (shown,) = json.loads(lived.menugate("approvals", "--json").out)
    assert shown["glance"] == 'fs_delete "notes.md"'


def test_a_command_of_another_process_reads_it_too(lived: Lived) -> None:
    with pipe(lived.work, lived.home) as line:
        work(line)
    words = command("audit", "tail", "--workspace", str(lived.work))
    done = warm.run(words, environment(lived.home), text=True, timeout=PATIENCE)
    assert 'Read "notes.md"' in done.stdout
