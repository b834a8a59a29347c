"""Do the walls stand? A process behind them reads what it was given, and nothing else at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.guards.sandbox import landlock
from mcp_server.guards.sandbox.landlock import build_launcher_arguments, write_plan_file
from mcp_server.guards.search import ripgrep_run
from mcp_server.guards.search.matches import EngineUnavailable, SearchDeadline
from mcp_server.guards.search.ripgrep_run import LOADER_PATHS, RipgrepAccess, build_ripgrep_plan, run_ripgrep
from tests.clients.served import PATIENCE

# What a prisoner tries; each line ends in OPEN or SHUT.
TRY = """
import os, socket, sys
def attempt(what, act):
    try:
        act()
        print(what, "OPEN")
    except OSError:
        print(what, "SHUT")
for path in sys.argv[1:]:
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path).read())
attempt("write", lambda: open("inside/new", "w"))
attempt("append", lambda: open("inside/f", "a"))
attempt("remove", lambda: os.unlink("inside/f"))
attempt("program", lambda: os.execv("/bin/true", ["true"]))
def connect():
    with socket.create_server(("127.0.0.1", 0)):
        pass
attempt("network", connect)
attempt("signal", lambda: os.kill(os.getppid(), 0))
"""


@pytest.fixture
def room(tmp_path: Path, ripgrep_works: bool) -> Path:
    if not ripgrep_works:
        pytest.skip("this kernel has no Landlock")
    for folder in ("inside", "beside", ".menugate"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text("x")
    (tmp_path / "inside" / "out").symlink_to(tmp_path / "beside" / "f")
    (tmp_path / "lent").write_text("x")
    return tmp_path


def prisoner(room: Path, paths: list[str], tries: list[str]) -> dict[str, str]:
    start, lent = os.open(room, os.O_RDONLY), os.open(room / "lent", os.O_RDONLY)
    plan = build_ripgrep_plan(RipgrepAccess(start, tuple(paths), (lent,)), 10)
    plan["open"] = {"run": [*LOADER_PATHS, f"{sys.base_prefix}/lib"]}
    file = write_plan_file(plan)
    code = [os.path.realpath(sys.executable), "-I", "-S", "-c", TRY, *tries, *paths]
    words = [*build_launcher_arguments(landlock.CONFINE, file), *code]
    try:
        done = subprocess.run(
            words, pass_fds=(file, start, lent), capture_output=True, text=True, timeout=PATIENCE, cwd="/", env={}
        )
    finally:
        for one in (file, start, lent):
            os.close(one)
    assert done.stdout, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def test_only_what_was_given_is_readable(room: Path) -> None:
    tries = ["inside/f", "inside", "lent", ".", "beside/f", "beside", ".menugate", ".menugate/f", "inside/out"]
    tries += ["/etc/passwd", "/proc/self/environ", str(room / "beside" / "f"), "inside/../beside/f"]
    found = prisoner(room, ["./inside"], tries)
    assert {what for what, answer in found.items() if answer == "OPEN"} == {"inside/f", "inside", "lent", "./inside"}


def test_a_link_in_place_of_what_was_listed_opens_nothing(room: Path) -> None:
    (room / "swapped").symlink_to("beside")
    (room / "through").symlink_to(".")
    found = prisoner(room, ["./swapped", "./through/beside", "./missing"], ["beside/f"])
    assert "OPEN" not in found.values()


def start(room: Path) -> int:
    return os.open(room, os.O_RDONLY)


@pytest.mark.parametrize("program", ["/nowhere/rg", "/etc/passwd"])
def test_a_program_that_cannot_start_is_told_apart(room: Path, program: str) -> None:
    folder = start(room)
    with pytest.raises(EngineUnavailable):
        run_ripgrep(Path(program), ["x"], RipgrepAccess(folder, ("./",)), SearchDeadline(5))
    os.close(folder)


def test_without_landlock_nothing_starts(room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An older kernel answers the first system call with an error; the program must not run open."""
    old = tmp_path / "old.py"
    old.write_text(landlock.CONFINE.read_text().replace("444, 445, 446", "4444, 4445, 4446"))
    monkeypatch.setattr(ripgrep_run, "CONFINE", old)
    folder = start(room)
    with pytest.raises(EngineUnavailable):
        run_ripgrep(Path("/bin/echo"), ["ran"], RipgrepAccess(folder, ("./",)), SearchDeadline(5))
    os.close(folder)


def test_walls_that_do_not_stand_are_noticed(room: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(landlock.CONFINE.read_text().replace("kernel(RESTRICT_SELF, self._rules, 0)", "pass"))
    monkeypatch.setattr(ripgrep_run, "CONFINE", broken)
    folder = start(room)
    with pytest.raises(EngineUnavailable, match="walls"):
        run_ripgrep(Path("/bin/echo"), ["ran"], RipgrepAccess(folder, ("./",)), SearchDeadline(5))
    os.close(folder)


def test_output_is_bounded_and_time_too(room: Path) -> None:
    folder = start(room)
    endless = run_ripgrep(Path("/usr/bin/yes"), [], RipgrepAccess(folder, ("./",)), SearchDeadline(20))
    assert endless.truncated and len(endless.output) < 17 << 20
    asleep = run_ripgrep(Path("/bin/sleep"), ["60"], RipgrepAccess(folder, ()), SearchDeadline(0.3))
    assert asleep.timed_out
    os.close(folder)
