"""Is a secret stored without ever being shown, and masked by servers that were running before?"""

import io
import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.conftest import Said, Type
from tests.clients import warm
from tests.clients.pipe import pipe
from tests.clients.secret_tool import write_program
from tests.clients.served import command, environment

VALUE = "canary-5up3r-secret"
Give: TypeAlias = Callable[[str, bytes], Said]


@pytest.fixture
def give(menugate: Type, monkeypatch: pytest.MonkeyPatch) -> Give:
    """Type a command that reads its value from a pipe."""

    def typed(line: str, value: bytes) -> Said:
        stdin = io.TextIOWrapper(io.BytesIO(value))
        monkeypatch.setattr("sys.stdin", stdin)
        return menugate(line)

    return typed


def test_a_secret_is_stored_listed_and_removed(give: Give, menugate: Type, place: Path) -> None:
    said = give("secret set TOKEN --for https://Example.org/ --for https://example.org", f"{VALUE}\n".encode())
    assert (said.code, said.out) == (0, "Stored TOKEN for all folders.\n")
    assert "a file that only this account can read" in said.err
    assert give("secret set TOKEN --here", b"another-long-value").code == 0
    listed = menugate("secret list")
    assert VALUE not in listed.out + listed.err
    rows = json.loads(menugate("secret list --json").out)
    assert [(row["name"], row["workspace"], row["origins"]) for row in rows] == [
        ("TOKEN", None, ["https://example.org"]),
        ("TOKEN", str(place), []),
    ]
    assert menugate("secret remove TOKEN").code == 0
    said = menugate("secret remove TOKEN")
    assert said.code == 1
    assert f"but one for {place}; add `--here`" in said.err
    assert menugate("secret remove TOKEN --here").code == 0
    assert "did you mean" not in menugate("secret remove TOKEN").err
    assert "No secrets are stored" in menugate("secret list").out
    assert not (place / ".menugate").exists(), "the workspace is not involved"


@pytest.mark.parametrize(
    ("line", "value", "says"),
    [
        ("secret set 'a b'", b"", "cannot be a secret's name"),
        ("secret set ../TOKEN", b"", "cannot be a secret's name"),
        ("secret set TOKEN --for example.org", b"", "--for: `example.org` is not a web site"),
        ("secret set TOKEN", b"", "the value is empty. Nothing was stored."),
        ("secret set TOKEN", b"\n", "the value is empty"),
        ("secret set TOKEN", b"short\n", "5 characters"),
        ("secret set TOKEN", b"\xff\xfe-not-text", "not UTF-8"),
        ("secret set TOKEN", b"x" * 70_000, "bytes"),
        ("secret remove TOKEN", b"", "there is no secret TOKEN"),
        ("secret remove ../x", b"", "cannot be a secret's name"),
    ],
)
def test_a_mistake_is_explained_and_stores_nothing(
    line: str, value: bytes, says: str, give: Give, menugate: Type, home: Path
) -> None:
    said = give(line, value)
    assert said.code in (1, 2)
    assert says in said.err
    assert json.loads(menugate("secret list --json").out) == []


def test_at_a_terminal_the_value_is_asked_for_and_not_shown(workspace: Path, home: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("secret", "set", "TOKEN"),
        env=environment(home),
        cwd=workspace,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(theirs)
    shown = b""
    while b"not shown): " not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, VALUE.encode() + b"\n")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"Stored TOKEN for all folders.\n")
    try:
        while more := os.read(ours, 1000):
            shown += more
    except OSError:
        pass  # the other side is closed
    os.close(ours)
    assert VALUE.encode() not in shown


def test_with_a_keyring_the_value_is_in_no_file_argument_or_environment(
    give: Give, menugate: Type, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{write_program(tmp_path / 'bin')}:{os.environ['PATH']}")
    said = give("secret set TOKEN", VALUE.encode())
    assert (said.code, said.err) == (0, "")
    assert [row["place"] for row in json.loads(menugate("secret list --json").out)] == ["keyring"]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in written if VALUE in path.read_text(errors="replace")] == []
    assert (home / "seen").read_text().count("argv") == 2, "the key was saved, and read again"


def test_a_program_that_a_server_started_stores_nothing(workspace: Path, home: Path) -> None:
    exports = "\n".join(f"export {name}='{value}'" for name, value in environment(home).items())
    line = f"echo a-value-of-the-model | {' '.join(command('secret', 'set', 'TOKEN'))}"
    (workspace / "store.sh").write_text(f"{exports}\n{line} 2>&1\n")
    with pipe(workspace, home, "--profile", "unrestricted", "--mode", "swe") as client:
        client.hello()
        said = json.dumps(client.call("bash", command="sh store.sh"))
        assert "was started by a menugate server" in said
        assert "BLOCKED" in json.dumps(client.call("bash", command="echo x | menugate secret set TOKEN"))
    found = warm.run(command("secret", "list", "--json"), environment(home), cwd=workspace)
    assert json.loads(found.stdout) == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_that_is_running_masks_it(era: str, workspace: Path, home: Path) -> None:
    """In results, in the record, in its log and in the line about each call."""
    (workspace / "config.txt").write_text(f"key one: {VALUE}\n")
    (workspace / "more.txt").write_text("key two: another-c4nary-value\n")
    before = warm.run(command("secret", "set", "ONE"), environment(home), cwd=workspace, input=VALUE.encode())
    assert before.returncode == 0
    with pipe(workspace, home, "--mode", "swe") as client:
        client.hello(era=era)
        assert VALUE not in json.dumps(client.call("Read", file_path="config.txt"))
        assert "another-c4nary-value" in json.dumps(client.call("Read", file_path="more.txt"))
        stored = warm.run(
            command("secret", "set", "TWO"), environment(home), cwd=workspace, input=b"another-c4nary-value"
        )
        assert stored.returncode == 0, stored.stderr
        shown = json.dumps(client.call("Read", file_path="more.txt"))
        assert "[redacted]" in shown
        assert "another-c4nary-value" not in shown
        client.call("grep", pattern=VALUE)
        client.call("Read", file_path=f"{VALUE}.txt")
    kept = [path for path in (workspace / ".menugate").rglob("*") if path.is_file()]
    assert [path for path in kept if VALUE.encode() in path.read_bytes()] == []
