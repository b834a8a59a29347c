"""H11: a folder of servers that nobody may read counted as one in which no server is."""

import os
from pathlib import Path

import pytest

from tests.clients.typed import typed


def test_status_and_doctor_say_what_cannot_be_read(workspace: Path, home: Path) -> None:
    assert typed(workspace, home, "mode", "build").code == 0
    folder = workspace / ".menugate" / "servers"
    folder.mkdir(exist_ok=True)
    folder.chmod(0)
    if os.access(folder, os.R_OK):
        folder.chmod(0o700)
        pytest.skip("root reads everything")
    try:
        status, doctor = (typed(workspace, home, word).out for word in ("status", "doctor"))
    finally:
        folder.chmod(0o700)
    for said in (status, doctor):
        assert f"{folder} cannot be read" in said and f"chmod 700 {folder}" in said, said
    assert "Everything is in order." not in doctor
    assert "Everything is in order." in typed(workspace, home, "doctor").out
