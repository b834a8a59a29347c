"""Did a child leave something behind that other programs obey? What git would run for it is taken away, the rest named.

What is there already cannot be changed by a child. What is not there cannot be held by a mount either: so it is looked
after when it has ended. After a program that was trusted with a repository's folder nothing of the kind can be meant.
After a command it can, and it may be the person's own from meanwhile: that is not ours to take away.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_server.guards.sandbox.protected import OBEYED_BY_GIT, OTHERS_IN_GIT, PathWatch, ProtectedPaths
from mcp_server.model.results import Code, Problem, Refusal


def find_obeyed_by_git(workspace: Path, opened: tuple[str, ...]) -> frozenset[Path]:
    """What there is of that in these folders."""
    names = (*OBEYED_BY_GIT, *OTHERS_IN_GIT)
    places = (workspace / folder / name for folder in opened for name in names)
    return frozenset(place for place in places if os.path.lexists(place))


def remove_planted_files(before: frozenset[Path], workspace: Path, opened: tuple[str, ...]) -> list[Path]:
    """What was not there before, and is not there any more."""
    strays = sorted(find_obeyed_by_git(workspace, opened) - before)
    for stray in strays:
        with suppress(FileNotFoundError):
            shutil.rmtree(stray) if stray.is_dir() and not stray.is_symlink() else stray.unlink()
    return [stray.relative_to(workspace) for stray in strays]


def build_planted_refusal(strays: list[Path]) -> Refusal:
    names = ", ".join(f"`{stray}`" for stray in strays)
    return Refusal(
        Problem(
            Code.NOT_GRANTED,
            f"A program that the repository brought along made {names}, by which git would run programs; that was "
            "taken away again.",
            "Tell the person: this repository does something it should not.",
        )
    )


def find_existing_obeyed(root: Path, places: ProtectedPaths) -> frozenset[str]:
    return frozenset(one for one in places.list_obeyed_paths() if os.path.lexists(root / one))


@dataclass(frozen=True)
class PlantedSince:
    """What there was when a command began."""

    watch: PathWatch
    before: frozenset[str]

    async def find_planted_paths(self) -> tuple[str, ...]:
        """What there is now as well; of a whole new repository just that."""
        new = find_existing_obeyed(self.watch.root, await self.watch.scan_protected_paths()) - self.before
        return tuple(sorted(one for one in new if not any(str(above) in new for above in Path(one).parents)))
