"""Is a hidden command kept from running, at every profile that does not allow it?"""

from pathlib import Path

import pytest

from tests.tools.shell.house import served, text
from tests.tools.shell.test_classify import BYPASS


@pytest.mark.parametrize("profile", ["restricted", "normal"])
def test_no_way_of_hiding_a_command_fires_it(profile: str, workspace: Path, home: Path) -> None:
    (workspace / "bin").mkdir()
    for name in ("canary", "canary.so"):
        program = workspace / "bin" / name
        program.write_text(f"#!/bin/sh\ntouch {workspace}/bin/fired\n")
        program.chmod(0o755)
    (workspace / "a.txt").write_text("a\n")
    # What a pattern fits becomes an option.
    for name in ("--compress-program=canary", "-v"):
        (workspace / name).touch()
    # What could not be done there even after a yes is refused before anybody is asked.
    asked = ("APPROVAL_REQUIRED", "PROFILE_TOO_LOW", "NOT_FOUND")
    codes = ("PROFILE_TOO_LOW",) if profile == "restricted" else asked
    with served(workspace, home, "--profile", profile) as client:
        for what, line in BYPASS.items():
            for more in ({}, {"bash_id": "x"}, {"run_in_background": True}):
                answer = text(client.call("bash", command=line, **more))
                assert any(code in answer for code in codes), what
    assert not (workspace / "bin" / "fired").exists()
    assert not list(workspace.glob("canary-fired*"))
