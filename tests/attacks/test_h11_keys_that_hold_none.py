"""H11, N1: a key's file that holds no key, and a state that is lost."""

from pathlib import Path

import pytest

from tests.doors.pipe import pipe
from tests.doors.served import state_home
from tests.doors.typed import typed

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
    assert str(path) in doctor.out and f"mv {path}" in doctor.out and "In order" not in doctor.out
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
        assert "work mode, run control, profile" in said and "`menugate mode " in said, said
    assert typed(workspace, home, "mode", "build").code == 0
    assert typed(workspace, home, "profile", "normal").code == 0
    shown = typed(workspace, home, "status").out
    doctor = " ".join(typed(workspace, home, "doctor").out.split())
    assert "did not seal" not in shown
    for text in (" ".join(shown.split()), doctor):
        assert "holds for run control" in text and "`menugate control " in text, text
        assert "`menugate profile " not in text.partition("holds for")[2], text
    for axis, value in (("control", "assisted"), ("model", "fast"), ("ai-mode", "chat"), ("reasoning", "off")):
        assert typed(workspace, home, axis, value).code == 0, axis
    assert "chosen again since" in typed(workspace, home, "doctor").out
