"""N5, M1: a `menugate.yaml` in the documented place broke every command, which was said with exit 137 and no error.

Each way the operator's folder and the workspace can lie to each other, in both sandboxes, as root and as nobody.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.nobody import NOBODY, python
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import ROOT, command, environment
from tests.clients.typed import typed

MARK = "2718281"
CONFIG = f"# {MARK}\nbudget:\n  calls: 500\n"
BECOME = "import os, sys; os.setgroups([]); os.setgid({id}); os.setuid({id}); os.execvp(sys.argv[1], sys.argv[1:])"
WITHOUT_BUBBLEWRAP = 'mount --bind /dev/null /usr/bin/bwrap && exec "$0" "$@"'
LAYOUTS = ("beside", "inside", "above", "same", "folder linked", "folder linked inside", "file linked inside")


@pytest.fixture
def room(request: pytest.FixtureRequest) -> Generator[Path, None, None]:
    """A folder that nobody in particular can get to."""
    folder = Path("/var/tmp") / f"menugate-n5-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def run_words(who: str, sandbox: str) -> list[str]:
    """How the server is started as that user, where it finds that sandbox; skipped where this machine cannot."""
    if os.geteuid() != 0 and (who == "nobody" or sandbox == "landlock"):
        pytest.skip("only root can become somebody else or take bubblewrap away")
    words = command("serve")
    if who == "nobody":
        program = python()
        if program is None:
            pytest.skip("there is no Python here that nobody may start")
        path = os.pathsep.join([str(ROOT), *(one for one in sys.path if one)])
        about = [f"PYTHONPATH={path}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS="]
        words = [sys.executable, "-c", BECOME.format(id=NOBODY), "/usr/bin/env", *about, program, *words[1:]]
    if sandbox == "landlock" and Path("/usr/bin/bwrap").exists():
        words = ["unshare", "--mount", "sh", "-c", WITHOUT_BUBBLEWRAP, *words]
    return words


def lay_out(room: Path, layout: str) -> tuple[Path, Path]:
    """The workspace and the home, with a valid configuration in the documented place."""
    home, work = room / "home", room / "work"
    operators = home / ".config" / "menugate"
    if layout == "inside":
        work = home
    elif layout == "above":
        work = operators / "work"
    elif layout == "same":
        work = operators
    real = {"folder linked": room / "dotfiles" / "menugate", "folder linked inside": work / "dotfiles" / "menugate"}
    work.mkdir(parents=True, exist_ok=True)
    if layout in real:
        real[layout].mkdir(parents=True)
        operators.parent.mkdir(parents=True)
        operators.symlink_to(real[layout])
    operators.mkdir(parents=True, exist_ok=True)
    if layout == "file linked inside":
        (work / "dotfiles").mkdir()
        (work / "dotfiles" / "menugate.yaml").write_text(CONFIG)
        (operators / "menugate.yaml").symlink_to(work / "dotfiles" / "menugate.yaml")
    else:
        (operators / "menugate.yaml").write_text(CONFIG)
    (work / "src").mkdir()
    return work, home


def give_away(room: Path, who: str) -> None:
    if who == "nobody":
        for path in (room, *room.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def bash(one: Pipe, line: str, **more: Any) -> dict[str, Any]:
    return one.call("bash", command=line, **more)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("who", ["root", "nobody"])
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_commands_run_beside_the_operators_file(room: Path, layout: str, who: str, sandbox: str) -> None:
    work, home = lay_out(room, layout)
    subprocess.run(["git", "init", "-q", str(work)], check=True, env=environment(home))
    give_away(room, who)
    config = home / ".config" / "menugate" / "menugate.yaml"
    # Keys inside of the workspace would be refused, and a workspace in which Python looks for modules is only read.
    run = ("/usr/bin/env", "PYTHONSAFEPATH=1", f"MENUGATE_STATE_HOME={room / 'keys'}", *run_words(who, sandbox))
    with pipe(work, home, "--mode", "swe", "--profile", "trusted", run=run) as one:
        one.hello()
        for behind in (False, True):
            ran = bash(one, "echo here > src/made.txt && cat src/made.txt", run_in_background=behind)
            assert not ran["isError"], said(ran)
        ran = bash(one, "cat src/made.txt; sleep 0")
        assert ran["structuredContent"]["exit_code"] == 0, said(ran)
        assert "here" in said(ran)
        status = one.call("git_status")
        assert not status["isError"], said(status)
        # What the operator wrote is neither read nor changed by a command.
        for path in (config, config.resolve()):
            ran = bash(one, f"cat '{path}' | head -c 200; echo budget: > '{path}'; ls -d .")
            assert MARK not in said(ran)
            ran = bash(one, f"rm -f '{path}'; mv '{path}' src/; echo")
    assert config.read_text() == CONFIG


@pytest.mark.parametrize("who", ["root", "nobody"])
def test_no_command_makes_the_operators_file_where_the_workspace_is_its_folder(room: Path, who: str) -> None:
    work, home = lay_out(room, "same")
    (work / "menugate.yaml").unlink()
    give_away(room, who)
    with pipe(work, home, "--mode", "swe", "--profile", "trusted", run=run_words(who, "bubblewrap")) as one:
        one.hello()
        assert "fine" in said(bash(one, "echo 'posture: {profile: unrestricted}' > menugate.yaml; echo fine"))
        assert one.call("Write", file_path="menugate.yaml", content="run_control: autonomous\n")["isError"]
    assert not (work / "menugate.yaml").exists() or not (work / "menugate.yaml").read_text()


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_a_folder_to_run_in_that_is_not_there_is_an_error(room: Path, sandbox: str) -> None:
    work, home = lay_out(room, "beside")
    (work / "file").write_text("")
    with pipe(work, home, "--mode", "swe", "--profile", "trusted", run=run_words("root", sandbox)) as one:
        one.hello()
        for folder in ("gone", "src/gone", "file"):
            for more in ({}, {"run_in_background": True}, {"bash_id": "mine"}):
                ran = bash(one, "echo never", exec_dir=folder, **more)
                assert ran["isError"], said(ran)
                assert f"`{folder}`" in said(ran)
                assert "INTERNAL" not in said(ran)
        assert not bash(one, "pwd", exec_dir="src")["isError"]


def break_bubblewrap(room: Path) -> list[str]:
    """A bubblewrap that holds when it is tried, and cannot make the mounts of a real call."""
    broken = room / "bwrap"
    broken.write_text(
        '#!/bin/sh\nfor one; do [ "$one" = "--bind-broken" ] && exit 9; case "$one" in '
        f'*/{room.name}/*) echo "bwrap: Can\'t mount $one: No such device" >&2; exit 1;; esac; done\n'
        'exec /usr/bin/bwrap.real "$@"\n'
    )
    broken.chmod(0o755)
    inner = f"touch /run/n5 && mount --bind /usr/bin/bwrap /run/n5 && mount --bind {broken} /usr/bin/bwrap"
    real = f"sed -i s,/usr/bin/bwrap.real,/run/n5, {broken}"
    return ["unshare", "--mount", "sh", "-c", f'{real} && {inner} && exec "$0" "$@"']


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/usr/bin/bwrap").exists(), reason="only root can break it")
def test_a_sandbox_that_cannot_be_built_is_an_error_and_the_doctor_finds_it(room: Path) -> None:
    work, home = lay_out(room, "beside")
    breaking = break_bubblewrap(room)
    with pipe(work, home, "--mode", "swe", "--profile", "trusted", run=[*breaking, *command("serve")]) as one:
        one.hello()
        for more in ({}, {"run_in_background": True}, {"bash_id": "mine"}):
            ran = bash(one, "touch never", **more)
            assert ran["isError"], said(ran)
            assert "Can't mount" in said(ran)
            assert "could not" in said(ran)
        assert one.call("git_status")["isError"]
    found = subprocess.run(
        [*breaking, *command("doctor"), "--workspace", str(work)], env=environment(home), capture_output=True, text=True
    )
    assert found.returncode != 0
    assert "Can't mount" in found.stdout
    assert re.search(r"^fault +sandbox", found.stdout, re.MULTILINE)
    assert not (work / "never").exists()


def test_the_doctor_tries_the_mounts_of_a_real_call(room: Path) -> None:
    work, home = lay_out(room, "beside")
    found = typed(work, home, "doctor", "--json")
    assert found.code == 0, found.out
    (sandbox,) = [one for one in json.loads(found.out)["findings"] if one["what"] == "sandbox"]
    assert sandbox["grade"] in ("good", "note")
    assert not list((work / "src").iterdir())


def test_an_unreadable_folder_of_programs_breaks_nothing(room: Path) -> None:
    """As nobody: root may look everywhere."""
    work, home = lay_out(room, "beside")
    shut = room / "shut"
    (shut / "bin").mkdir(parents=True)
    (shut / "bin").chmod(0o000)
    give_away(room, "nobody")
    os.chown(shut, 0, 0)
    shut.chmod(0o700)
    words = run_words("nobody", "bubblewrap")
    at = words.index("/usr/bin/env") + 1
    words.insert(at, f"PATH={shut}/bin:{shut}:/usr/local/bin:/usr/bin:/bin")
    with pipe(work, home, "--mode", "swe", "--profile", "trusted", run=words) as one:
        one.hello()
        ran = bash(one, "echo fine")
        assert not ran["isError"], said(ran)
        assert "fine" in said(ran)


@pytest.mark.parametrize("profile", ["trusted", "normal"])
def test_a_nul_in_a_command_is_told_as_what_it_is(room: Path, profile: str) -> None:
    """And nobody is asked about it first."""
    work, home = lay_out(room, "beside")
    with pipe(work, home, "--mode", "swe", "--profile", profile) as one:
        one.hello()
        for more in ({}, {"run_in_background": True}, {"bash_id": "mine"}):
            ran = bash(one, "touch a\0b", **more)
            assert ran["isError"]
            assert "NUL" in said(ran)
            assert "INTERNAL" not in said(ran)
