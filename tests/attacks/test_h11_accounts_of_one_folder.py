"""H11, N4: an account that the system does not know, and several accounts that work in one folder."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.clients.served import ROOT

SYSTEM = "/usr/bin/python3"
LIBRARIES = next(path for path in sys.path if path.endswith("site-packages"))
FIRST, SECOND = 12345, 12346


def as_account(number: int) -> list[str]:
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]


@cache
def usable() -> bool:
    """Can other accounts start a Python that fits, and may this one become them?"""
    if os.geteuid() != 0 or not (Path(SYSTEM).exists() and shutil.which("setpriv")):
        return False
    same = subprocess.run([SYSTEM, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    words = [*as_account(FIRST), SYSTEM, "-c", f"import sys; sys.path.append({LIBRARIES!r}); import mcp"]
    fits = same.stdout.split() == [str(part) for part in sys.version_info[:2]]
    return fits and subprocess.run(words, cwd="/", capture_output=True).returncode == 0


# As a text, so that nobody tries it who runs none of these.
pytestmark = pytest.mark.skipif("not usable()", reason="no other account can run menugate here")


@pytest.fixture
def shared() -> Iterator[Path]:
    """Not below pytest's own folder, which is root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="menugate-shared-"))
    folder.chmod(0o755)
    for name in ("work", "keys"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def says(shared: Path, number: int, *line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words = [*(as_account(number) if number else ()), SYSTEM, "-m", "mcp_server", *line]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{LIBRARIES}", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    words += ["--workspace", str(shared / "work")]
    return subprocess.run(words, env=env, cwd=shared / "work", capture_output=True, text=True, timeout=300)


def keys(shared: Path, number: int) -> str:
    return str(shared / "keys" / str(number))


@pytest.mark.parametrize("line", ["doctor", "status", "menus", "mode plan"])
def test_an_account_nobody_knows_without_a_home(shared: Path, line: str) -> None:
    said = says(shared, FIRST, *line.split(), MENUGATE_STATE_HOME=keys(shared, FIRST))
    assert (said.returncode, "Traceback" in said.stderr) == (0, False), said.stdout + said.stderr
    bare = says(shared, SECOND, *line.split())
    assert "Traceback" not in bare.stderr
    assert bare.returncode == 0 or "MENUGATE_STATE_HOME" in bare.stdout + bare.stderr


def test_a_home_that_may_not_be_entered_is_named(shared: Path) -> None:
    (shared / "shut").mkdir(mode=0o700)
    home = str(shared / "shut")
    for line in ("doctor", "mode plan"):
        said = says(shared, FIRST, *line.split(), HOME=home, MENUGATE_STATE_HOME=keys(shared, FIRST))
        assert said.returncode == 1
        assert f"HOME is {home}" in said.stderr and "Set HOME" in said.stderr, said.stderr


def test_a_second_account_keeps_its_state_where_the_first_lets_nobody_in(shared: Path) -> None:
    for number, lines in ((FIRST, ["mode plan"]), (SECOND, ["mode plan", "status", "doctor", "call menu_list"])):
        for line in lines:
            said = says(shared, number, *line.split(), MENUGATE_STATE_HOME=keys(shared, number))
            assert said.returncode == 0, (number, line, said.stdout, said.stderr)
    assert (shared / "work" / ".menugate").stat().st_uid == FIRST
    shown = json.loads(says(shared, SECOND, "status", "--json", MENUGATE_STATE_HOME=keys(shared, SECOND)).stdout)
    assert shown["state"]["file"].startswith(keys(shared, SECOND))
    assert shown["posture"]["work_mode"]["from"] == "chosen"
    assert Path(keys(shared, SECOND)).stat().st_mode & 0o077 == 0
    alone = says(shared, SECOND, "mode", "build")
    assert alone.returncode == 1 and "MENUGATE_STATE_HOME" in alone.stderr and "Traceback" not in alone.stderr


@pytest.mark.parametrize("order", [(0, FIRST, 0), (FIRST, 0, FIRST)], ids=["root first", "the owner first"])
def test_root_leaves_the_owner_of_a_folder_inside(shared: Path, order: tuple[int, ...]) -> None:
    os.chown(shared / "work", FIRST, FIRST)
    for number in order:
        for line in ("call menu_list", "mode plan"):
            said = says(shared, number, *line.split(), MENUGATE_STATE_HOME=keys(shared, number))
            assert said.returncode == 0, (number, line, said.stderr)
    state = shared / "work" / ".menugate"
    assert {state.stat().st_uid, (state / "accounts").stat().st_uid} == {FIRST}
    # Without keys that last, everybody's state is one of their own beside the others'.
    bare = says(shared, FIRST, "call", "menu_list")
    assert bare.returncode == 0, bare.stderr
