"""Did a child leave something behind by which somebody's git would run a program later? It is taken away again.

What is there already cannot be changed by a child. What is not there cannot be held by a mount either: so a program
that was trusted with a repository's folder is looked after when it has ended.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from mcp_server.guards.processes.places import OBEYED_BY_GIT, OTHERS_IN_GIT
from mcp_server.model.ending import Code, Problem, Refusal


def obeyed(workspace: Path, opened: tuple[str, ...]) -> frozenset[Path]:
    """What there is of that in these folders."""
    names = (*OBEYED_BY_GIT, *OTHERS_IN_GIT)
    places = (workspace / folder / name for folder in opened for name in names)
    return frozenset(place for place in places if os.path.lexists(place))


def take_away(before: frozenset[Path], workspace: Path, opened: tuple[str, ...]) -> list[Path]:
    """What was not there before, and is not there any more."""
    strays = sorted(obeyed(workspace, opened) - before)
    for stray in strays:
        with suppress(FileNotFoundError):
            shutil.rmtree(stray) if stray.is_dir() and not stray.is_symlink() else stray.unlink()
    return [stray.relative_to(workspace) for stray in strays]


def told(strays: list[Path]) -> Refusal:
    names = ", ".join(f"`{stray}`" for stray in strays)
    return Refusal(
        Problem(
            Code.NOT_GRANTED,
            f"A program that the repository brought along made {names}, by which git would run programs; that was "
            "taken away again.",
            "Tell the person: this repository does something it should not.",
        )
    )
