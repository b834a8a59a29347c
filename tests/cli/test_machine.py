"""What does a command say where this machine does not let it read or write? Whose it is, or what is full."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.nobody import NOBODY, python
from tests.clients.served import command, environment


@pytest.mark.parametrize("line", ["status", "check", "menus --json"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is full")
def test_a_full_disk_behind_the_output_is_said(line: str, place: Path, home: Path) -> None:
    with Path("/dev/full").open("w") as full:
        said = subprocess.run(
            command(*line.split()), cwd=place, env=environment(home), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert said.returncode == 1
    assert said.stderr == "menugate: the output cannot be written (No space left on device).\n"


@pytest.fixture
def foreign() -> Iterator[Path]:
    """A folder in which root ran menugate, seen by nobody in particular."""
    folder = Path("/var/tmp") / f"menugate-foreign-{os.getpid()}"
    (folder / ".menugate").mkdir(parents=True)
    folder.chmod(0o755)
    (folder / ".menugate").chmod(0o700)
    (folder / ".menugate" / "state.db").touch(0o600)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def keys() -> Iterator[Path]:
    """The home of nobody in particular."""
    folder = Path("/var/tmp") / f"menugate-keys-{os.getpid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else's folder can be made here")
@pytest.mark.parametrize("line", ["status", "doctor", "audit tail", "mode plan", "pause", "messages", "call menu_list"])
def test_a_state_that_somebody_else_keeps_shuts_nobody_out(line: str, foreign: Path, keys: Path) -> None:
    program = python()
    if program is None:
        pytest.skip("there is no Python here that nobody may start")
    variables = environment(keys) | {
        "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    said = subprocess.run(
        [program, *command(*line.split())[1:]],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=foreign,
        env=variables,
        capture_output=True,
        text=True,
    )
    # Nothing is on record of theirs yet.
    assert said.returncode == (1 if line == "audit tail" else 0), said
    assert "Traceback" not in said.stderr
    assert [path.name for path in (foreign / ".menugate").iterdir()] == ["state.db"], "it is left as it is"
