"""Did a child plant files that other programs obey? Those that git would run are removed, the others reported.

A child cannot change such a file if it exists already. A mount cannot protect one that does not exist, so we look after
the child ends. A program trusted with a repository's folder cannot have meant to create one. A command can; and the
person may have created the file meanwhile, so it is not ours to remove.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_server.guards.sandbox.protected import OBEYED_BY_GIT, OTHERS_IN_GIT, PathWatch, ProtectedPaths
from mcp_server.model.results import Code, Problem, Refusal


def find_obeyed_by_git(workspace: Path, opened: tuple[str, ...]) -> frozenset[Path]:
    """Find the files in these folders that git obeys."""
    names = (*OBEYED_BY_GIT, *OTHERS_IN_GIT)
    places = (workspace / folder / name for folder in opened for name in names)
    return frozenset(place for place in places if os.path.lexists(place))


def remove_planted_files(before: frozenset[Path], workspace: Path, opened: tuple[str, ...]) -> list[Path]:
    """Remove what was not there before; return what was removed."""
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
    """What existed when a command began."""

    watch: PathWatch
    before: frozenset[str]

    async def find_planted_paths(self) -> tuple[str, ...]:
        """List what exists now but did not then. Of a new repository, list only the repository itself."""
        new = find_existing_obeyed(self.watch.root, await self.watch.scan_protected_paths()) - self.before
        return tuple(sorted(one for one in new if not any(str(above) in new for above in Path(one).parents)))
