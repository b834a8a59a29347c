"""Does any file tool ever reach outside while somebody swaps links under it?

A second process flips folders and files between themselves and links out, as fast as it can. Each tool runs against it
for a moment over both ways of resolving; what lies outside has to be neither seen nor changed.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from time import monotonic
from typing import cast

import pytest

from mcp_server.guards.jail import Jail
from mcp_server.guards.openat import FOLDER, Resolve, can_kernel_resolve, open_by_kernel, open_by_steps
from mcp_server.model.context import Context
from mcp_server.model.results import Done, Refusal
from tests.clients.served import PATIENCE
from tests.sizes import FULL
from tests.tools.workbench import TOOLS, Workbench, WorkbenchContext

SECONDS = 0.15 if FULL else 0.03
"""For each tool and each way; longer finds more."""

FLIPPER = """
import itertools, os, sys
from contextlib import suppress
os.chdir(sys.argv[1])
outside = sys.argv[2]
def link(name, target):
    os.symlink(target, "swap")
    os.replace("swap", name)
def file(name):
    os.close(os.open("swap", os.O_CREAT | os.O_WRONLY))
    os.replace("swap", name)
def out():
    with suppress(OSError):
        os.rename("real", "parked")
        os.symlink("../outside", "real")
def back(turn):
    with suppress(OSError):
        os.unlink("real")
    with suppress(OSError):
        os.rename("real", f"made-{turn}")  # by a tool, in the moment when there was none
    with suppress(OSError):
        os.rename("parked", "real")
def restore():
    for folder in ("inside", "parked"):
        with suppress(OSError):
            if not os.path.exists(folder + "/target"):
                with open(folder + "/target", "x") as file:
                    file.write("INSIDE")
parent = os.getppid()
for turn in itertools.count():
    link("flip", "inside"); link("leaf", "inside/target")
    out()
    restore()
    link("flip", "../outside"); link("leaf", "../outside/target"); link("maybe", "../outside/new")
    back(turn)
    link("flip", outside); link("leaf", outside + "/target"); file("maybe")
    if turn == 0:
        print("ready", flush=True)
    if turn % 64 == 0 and os.getppid() != parent:
        break
"""

BACKENDS = [
    pytest.param(
        open_by_kernel, id="kernel", marks=pytest.mark.skipif(not can_kernel_resolve(), reason="no openat2 here")
    ),
    pytest.param(open_by_steps, id="steps"),
]


@dataclass
class Ground:
    root: Path
    outside: Path

    def outside_now(self) -> dict[str, bytes]:
        files = (path for path in self.outside.rglob("*"))
        return {str(path): path.read_bytes() if path.is_file() else b"" for path in files}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    root, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (root / "inside", root / "real", outside):
        folder.mkdir(parents=True)
        (folder / "target").write_text("INSIDE")
    (outside / "target").write_text("SECRET " * 100)
    (outside / "only-outside").write_text("SECRET")
    return Ground(root, outside)


@pytest.fixture
def flipper(ground: Ground) -> Iterator[None]:
    command = [sys.executable, "-c", FLIPPER, str(ground.root), str(ground.outside)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield
        assert process.poll() is None, "the flipper died, so nothing was raced"
        process.kill()


Calls = Iterator[dict[str, object]]
NUMBERS = count()


def paths(*names: str) -> Callable[[Path], Calls]:
    return lambda _root: ({"path": name} for name in cycle(names))


def folders(root: Path) -> Calls:
    for folder in cycle(("flip", "real")):
        yield {"path": f"{folder}/new-{next(NUMBERS)}/deep"}


def moves(root: Path) -> Calls:
    for folder in cycle(("flip", "real")):
        name = f"moved-{next(NUMBERS)}"
        (root / name).write_text("INSIDE")
        yield {"source": name, "destination": f"{folder}/{name}"}
        yield {"source": f"{folder}/target", "destination": f"taken-{name}"}


TARGETS = paths("flip/target", "leaf", "real/target")
WAYS: dict[str, Callable[[Path], Calls]] = {
    "Read": lambda root: ({"file_path": call["path"]} for call in TARGETS(root)),
    "Edit": lambda root: (
        {"file_path": call["path"], "old_string": "I", "new_string": "II"}
        for call in paths("flip/target", "leaf")(root)
    ),
    "Write": lambda root: (
        {"file_path": call["path"], "content": f"INSIDE {next(NUMBERS)}"}
        for call in paths("flip/target", "leaf", "real/target", "maybe")(root)
    ),
    "fs_read_file": TARGETS,
    "fs_write_file": lambda root: (
        call | {"content": f"INSIDE {next(NUMBERS)}"}
        for call in paths("flip/target", "leaf", "real/target", "maybe", "flip/new", "real/new")(root)
    ),
    "fs_list_directory": paths("flip", "real"),
    "fs_create_directory": folders,
    "fs_delete": lambda root: (call | {"permanent": next(NUMBERS) % 2 == 0} for call in TARGETS(root)),
    "fs_move": moves,
    "fs_file_info": TARGETS,
}


def test_every_tool_is_raced() -> None:
    """One that takes a path and no more is raced for that alone."""
    for name, tool in TOOLS.items():
        required = tool.arguments.get("required", ())
        assert name in WAYS or required == ["path"], f"`{name}` has no line in WAYS of tests/tools/test_race.py"
    assert set(WAYS) <= set(TOOLS)


def ways_of(name: str, root: Path) -> Calls:
    return WAYS.get(name, TARGETS)(root)


async def race(bench: Workbench, ground: Ground, name: str, seconds: float) -> tuple[int, int, list[str]]:
    """How often it ran and was refused, and every answer that shows what lies outside."""
    calls, end, tries, refused = ways_of(name, ground.root), monotonic() + seconds, 0, 0
    seen: list[str] = []
    # On a busy machine the first link out may be a while in coming; without one there was no race.
    while (now := monotonic()) < end or (not refused and now < end + PATIENCE):
        arguments = next(calls)
        if name in ("Edit", "Write"):
            await run(bench, "Read", {"file_path": arguments["file_path"]})
        answer = await run(bench, name, arguments)
        tries, refused = tries + 1, refused + (answer is None)
        if answer and any(sign in answer for sign in ("SECRET", "only-outside", "size: 700")):
            seen.append(answer)
    return tries, refused, seen


async def run(bench: Workbench, name: str, arguments: dict[str, object]) -> str | None:
    demand = TOOLS[name].get_demand(arguments)
    try:
        ending = await TOOLS[name].run(
            cast(Context, WorkbenchContext(bench.files.limit_to_grant(demand), demand)), arguments
        )
    except Refusal:
        return None
    return ending.text if isinstance(ending, Done) else None


@pytest.mark.heavy
@pytest.mark.parametrize("resolve", BACKENDS)
@pytest.mark.parametrize("name", TOOLS)
def test_nothing_outside_is_reached(ground: Ground, flipper: None, resolve: Resolve, name: str) -> None:
    before = ground.outside_now()
    tries, refused, seen = asyncio.run(race(Workbench(ground.root, resolve), ground, name, SECONDS))
    assert seen == []
    assert ground.outside_now() == before
    assert refused > 0, "no link out was ever met, so nothing was raced"
    assert tries


@pytest.mark.heavy
def test_a_door_that_looks_first_and_opens_later_is_found_out(
    ground: Ground, flipper: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a resolver that follows every link, and nobody who climbs back up to check."""

    def leaky(root: int, path: str) -> tuple[int, str]:
        return os.open(path, FOLDER, dir_fd=root), path

    def unchecked(*_: object) -> None:
        return None

    monkeypatch.setattr(Jail, "_check_place", unchecked)
    bench = Workbench(ground.root, leaky)
    for _ in range(40):
        _, _, seen = asyncio.run(race(bench, ground, "Read", SECONDS))
        if seen:
            return
    pytest.fail("the race does not find a door that stands open")


@pytest.mark.heavy
def test_climbing_back_up_finds_a_resolver_that_leaks(ground: Ground, flipper: None) -> None:
    def leaky(root: int, path: str) -> tuple[int, str]:
        return os.open(path, FOLDER, dir_fd=root), path

    assert asyncio.run(race(Workbench(ground.root, leaky), ground, "Read", SECONDS))[2] == []


@pytest.mark.parametrize("resolve", BACKENDS)
@pytest.mark.parametrize("name", TOOLS)
def test_a_swap_at_the_worst_moment_changes_nothing(ground: Ground, resolve: Resolve, name: str) -> None:
    """No luck needed: right after a folder was resolved, everything by name in it leads out."""
    for link, target in {"flip": "inside", "leaf": "inside/target", "maybe": "inside/target"}.items():
        (ground.root / link).symlink_to(target)
    before = ground.outside_now()

    def swapping(root: int, path: str) -> tuple[int, str]:
        resolved = resolve(root, path)
        for link, target in {"flip": "../outside", "leaf": "../outside/target", "maybe": "../outside/new"}.items():
            os.symlink(target, ground.root / "swap")
            os.replace(ground.root / "swap", ground.root / link)
        if path == "real":
            os.rename(ground.root / "real", ground.root / f"gone-{next(NUMBERS)}")
            os.symlink("../outside", ground.root / "real")
        return resolved

    bench, calls = Workbench(ground.root, swapping), ways_of(name, ground.root)
    for _ in range(6):
        answer = asyncio.run(run(bench, name, next(calls)))
        assert "SECRET" not in (answer or "")
        assert "only-outside" not in (answer or "")
    assert ground.outside_now() == before
