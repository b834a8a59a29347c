"""Does setting up name the programs that are missing, and ask for those of the tests only where tests are to run?"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.served import PATIENCE

SETUP = Path(__file__).parents[2] / "bin" / "setup"
# What makes an environment: as much of Python as is asked here, in no time.
PYTHON = '#!/bin/sh\n[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"\nexit 0\n'
EVERYTHING = ("bwrap", "bash", "git", "make", "mount", "setpriv", "setsid", "unshare")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A search path with what the script itself runs, and everything that tests need; nothing that could install."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "cp", "mkdir", "rm"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    for name, text in {"uname": "echo Linux", "id": "echo 0", **dict.fromkeys(EVERYTHING, "exit 0")}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / "python3").write_text(PYTHON)
    for path in folder.iterdir():
        if not path.is_symlink():
            path.chmod(0o755)
    return folder


def said(programs: Path, *words: str) -> str:
    done = subprocess.run(
        ["sh", str(SETUP), *words, str(programs.parent / "venv")],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert (programs.parent / "venv" / "bin" / "python").exists()
    return done.stderr


def test_nothing_is_said_where_everything_is_there(programs: Path) -> None:
    assert said(programs, "--tests").startswith("installing menugate")


@pytest.mark.parametrize(
    ("gone", "package"), [("git", "git"), ("make", "make"), ("unshare", "util-linux"), ("setpriv", "util-linux")]
)
def test_what_only_tests_need_is_missed_by_them_alone(programs: Path, gone: str, package: str) -> None:
    (programs / gone).unlink()
    assert f"on Debian: sudo apt-get install {package}\n" in said(programs, "--tests")
    assert "apt-get" not in said(programs)


def test_bubblewrap_is_missed_by_everybody(programs: Path) -> None:
    (programs / "bwrap").unlink()
    assert "sudo apt-get install bubblewrap\n" in said(programs)
    (programs / "git").unlink()
    assert "sudo apt-get install bubblewrap git\n" in said(programs, "--tests")


def test_root_has_what_is_missing_added(programs: Path) -> None:
    log = programs.parent / "log"
    (programs / "apt-get").write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
    (programs / "apt-get").chmod(0o755)
    (programs / "git").unlink()
    (programs / "mount").unlink()
    assert "adding Debian's git util-linux" in said(programs, "--tests")
    assert log.read_text().splitlines()[-1] == "install -y -qq --no-install-recommends git util-linux"
