"""H11, N1: a key's file that holds no key, and a state that is lost."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.pipe import pipe
from tests.clients.served import state_home
from tests.clients.typed import typed

NAMES = ("ledger.key", "http.key", "request-state.key")


def spoil(path: Path, how: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    if how == "a folder":
        path.mkdir()
    else:
        path.write_text("" if how == "empty" else "0123456789")
        path.chmod(0o600)


@pytest.mark.parametrize("how", ["empty", "cut", "a folder"])
@pytest.mark.parametrize("name", NAMES)
def test_doctor_and_status_name_it_with_the_cure(workspace: Path, home: Path, name: str, how: str) -> None:
    assert typed(workspace, home, "call", "menu_list").code == 0
    path = state_home(home) / name
    spoil(path, how)
    doctor = typed(workspace, home, "doctor")
    assert doctor.code == 1
    assert str(path) in doctor.out and f"mv {path}" in doctor.out and "Everything is in order" not in doctor.out
    assert all(row in doctor.out for row in ("menus and rules", "sandbox", "leftovers")), doctor.out
    status = typed(workspace, home, "status")
    assert status.code == 0, status.err
    assert f"mv {path}" in status.out and "posture" in status.out
    called = typed(workspace, home, "call", "menu_list")
    assert "Traceback" not in called.err
    if name == "request-state.key" and how != "a folder":
        # It only seals questions in flight: a new one is made.
        assert called.code == 0, called.err
        assert typed(workspace, home, "doctor").code == 0
    if how == "a folder" and name != "http.key":
        assert called.code == 1 and f"mv {path}" in called.err
    path.rmdir() if how == "a folder" else path.unlink(missing_ok=True)
    assert "holds no key" not in typed(workspace, home, "doctor").out


def test_what_is_left_to_choose_after_a_lost_state_is_said(workspace: Path, home: Path) -> None:
    assert typed(workspace, home, "profile", "trusted").code == 0
    (workspace / ".menugate" / "state.db").unlink()
    with pipe(workspace, home) as one:
        one.hello()
        one.call("menu_list")
    for words in (("status",), ("doctor",)):
        said = " ".join(typed(workspace, home, *words).out.split())
        for line in ("mode build", "control autonomous", "profile normal", "ai-mode agent"):
            assert f"menugate {line}" in said, said
    assert typed(workspace, home, "mode", "build").code == 0
    assert typed(workspace, home, "profile", "normal").code == 0
    shown = typed(workspace, home, "status").out
    doctor = " ".join(typed(workspace, home, "doctor").out.split())
    assert "did not seal" not in shown
    for text in (" ".join(shown.split()), doctor):
        assert "menugate control autonomous" in text and "menugate ai-mode agent" in text, text
        assert "menugate mode " not in text and "menugate profile " not in text, text
    for axis, value in (("control", "assisted"), ("ai-mode", "chat")):
        assert typed(workspace, home, axis, value).code == 0, axis
    assert "Everything is in order." in typed(workspace, home, "doctor").out


def take_key(workspace: Path, home: Path) -> None:
    (state_home(home) / "ledger.key").unlink()


def key_a_folder(workspace: Path, home: Path) -> None:
    path = state_home(home) / "ledger.key"
    spoil(path, "a folder")
    assert f"mv {path}" in typed(workspace, home, "doctor").out
    path.rename(path.with_name("ledger.key.old"))


def take_state(workspace: Path, home: Path) -> None:
    for path in (workspace / ".menugate").glob("state.db*"):
        path.unlink()


def cut_state(workspace: Path, home: Path) -> None:
    for path in (workspace / ".menugate").glob("state.db-*"):
        path.unlink()
    os.truncate(workspace / ".menugate" / "state.db", 3000)


def garble_state(workspace: Path, home: Path) -> None:
    cut_state(workspace, home)
    (workspace / ".menugate" / "state.db").write_bytes(b"nothing like it" * 500)


def take_state_live(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        one.call("menu_list")
        (workspace / ".menugate" / "state.db").unlink()
        one.call("menu_list")


LOSSES = [take_key, key_a_folder, take_state, cut_state, garble_state, take_state_live]
CONTROL = {"built-in": None, "operator's": "assisted"}


@pytest.mark.parametrize("shown", ["doctor", "status"])
@pytest.mark.parametrize("usual", CONTROL)
@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__)
def test_the_lines_that_are_shown_bring_the_usual_work_back(
    workspace: Path, home: Path, lose: Callable[[Path, Path], None], usual: str, shown: str
) -> None:
    config = home / ".config" / "menugate" / "menugate.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"run_control: {CONTROL[usual]}\n" if CONTROL[usual] else "")
    before = badge(workspace, home)
    assert typed(workspace, home, "mode", "plan").code == 0
    lose(workspace, home)
    typed(workspace, home, "doctor", "fix")
    typed(workspace, home, "call", "menu_list")
    refused = typed(workspace, home, "call", "fs_write_file", '{"path": "new.txt", "content": "x"}')
    assert "READ_ONLY_WORK" in refused.err + refused.out
    assert "chose" not in refused.err + refused.out
    said = typed(workspace, home, shown).out
    assert "\nEverything is in order.\n" not in said
    assert "narrowed" in said and "work mode" in said
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith("menugate ")]
    assert lines, said
    for line in lines:
        assert shlex.join(shlex.split(line)) == line
        assert typed(workspace, home, *shlex.split(line)[1:]).code == 0
    assert badge(workspace, home) == before
    called = typed(workspace, home, "call", "fs_write_file", '{"path": "new.txt", "content": "x"}')
    assert called.code == 0, called.err
    for words in ("doctor", "status"):
        assert "narrowed" not in typed(workspace, home, words).out
    assert "Everything is in order." in typed(workspace, home, "doctor").out


def badge(workspace: Path, home: Path) -> dict[str, str]:
    posture = json.loads(typed(workspace, home, "status", "--json").out)["posture"]
    return {axis: one["value"] for axis, one in posture.items()}


@pytest.mark.parametrize("how", ["empty", "cut"])
@pytest.mark.parametrize("health", ["auto", "ask"])
def test_the_doctor_alone_changes_nothing_and_says_what_is_true(
    workspace: Path, home: Path, how: str, health: str
) -> None:
    config = home / ".config" / "menugate" / "menugate.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"health: {health}\n")
    assert typed(workspace, home, "mode", "review").code == 0
    spoil(state_home(home) / "ledger.key", how)
    before = typed(workspace, home, "status", "--json").out, typed(workspace, home, "audit", "tail", "--json").out
    assert typed(workspace, home, "doctor").code == 1
    assert "`repair`" not in typed(workspace, home, "doctor").err
    assert before == (
        typed(workspace, home, "status", "--json").out,
        typed(workspace, home, "audit", "tail", "--json").out,
    )
    fixed = typed(workspace, home, "doctor", "fix")
    stands = badge(workspace, home)["work_mode"]
    assert ("repair` already" in fixed.err) <= (stands == "repair"), fixed.err
    again = typed(workspace, home, "doctor", "fix")
    assert ("repair` already" in again.err) <= (badge(workspace, home)["work_mode"] == "repair"), again.err
