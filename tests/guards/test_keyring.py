"""Does the keyring's program get what it needs and no more, and is it ended if it does not answer?"""

import json
import os
import select
from pathlib import Path

import pytest

from mcp_server.guards.keyring import KeychainKeyring, KeyringProgram, find_keyring
from mcp_server.model.secrets import Keyring, KeyringUnavailable
from tests.clients.secret_tool import write_program
from tests.clients.served import PATIENCE

KEY = "0f" * 32


@pytest.fixture
def keyring(tmp_path: Path, home: Path) -> Keyring:
    found = find_keyring(str(write_program(tmp_path / "bin")), tmp_path / "work", {"HOME": str(home)}, 20.0)
    assert found is not None
    return found


def test_what_is_saved_is_found_again(keyring: Keyring) -> None:
    assert keyring.load_key("one") is None
    keyring.save_key("one", KEY)
    assert keyring.load_key("one") == KEY
    assert keyring.load_key("two") is None


def test_the_key_is_on_no_command_line_and_in_no_environment(
    keyring: Keyring, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "canary-of-ours")
    keyring.save_key("one", KEY)
    keyring.load_key("one")
    seen = (home / "seen").read_text()
    assert len(seen.splitlines()) == 2
    assert KEY not in seen
    assert "canary-of-ours" not in seen
    assert {json.loads(line)["cwd"] for line in seen.splitlines()} == {"/"}


@pytest.mark.parametrize(("mood", "says"), [("lock", "locked collection"), ("hang", "within 0.5 seconds")])
def test_a_keyring_that_does_not_answer_is_unavailable(mood: str, says: str, tmp_path: Path, home: Path) -> None:
    keyring = find_keyring(str(write_program(tmp_path / "bin")), tmp_path / "work", {"HOME": str(home)}, 0.5)
    assert keyring is not None
    (home / "mood").write_text(mood)
    for ask in (lambda: keyring.load_key("one"), lambda: keyring.save_key("one", KEY)):
        with pytest.raises(KeyringUnavailable, match=says):
            ask()


def test_what_a_hanging_program_started_ends_with_it(tmp_path: Path) -> None:
    """It holds the pipes open, and would be waited for."""
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    program = tmp_path / "stubborn"
    program.write_text(f"#!/bin/sh\nexec 3> {tmp_path}/alive\necho here >&3\nsleep 600 &\nsleep 600\n")
    program.chmod(0o755)
    with pytest.raises(KeyringUnavailable):
        KeyringProgram(str(program), {"PATH": os.defpath}, 1.0).run(())
    said = b""
    while select.select([alive], [], [], PATIENCE)[0] and (more := os.read(alive, 100)):
        said += more
    os.close(alive)
    assert said == b"here\n", "the pipe is closed when its last holder has ended"


def test_no_program_from_the_workspace_is_asked(tmp_path: Path) -> None:
    planted = write_program(tmp_path / "work")
    assert find_keyring(str(planted), tmp_path / "work", {}) is None
    assert find_keyring("", tmp_path / "work", {}) is None


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(KeyringUnavailable, match="cannot be started"):
        KeychainKeyring(KeyringProgram(str(tmp_path / "none"), {})).load_key("one")


def test_the_keychain_gets_its_key_through_stdin(tmp_path: Path) -> None:
    program = tmp_path / "security"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/argv\n[ "$1" = -i ] && cat > {tmp_path}/said || exit 44\n')
    program.chmod(0o755)
    keychain = KeychainKeyring(KeyringProgram(str(program), {"PATH": os.defpath}))
    assert keychain.load_key("one") is None
    keychain.save_key("one", KEY)
    assert KEY not in (tmp_path / "argv").read_text()
    assert (tmp_path / "said").read_text().endswith(f"-w {KEY}\n")
