"""Did a child plant files that other programs obey? Those that git would run are removed, the others reported.

The sandbox keeps a child from changing such a file, but no mount protects a file that does not exist yet, so we look
after the child ends. Git, which works in a repository's own folder, never has reason to create one, so we remove it. A
command may have reason to, and the user may have created the file in the meantime, so we only report it.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from mcp_server.guards.sandbox.protected import OBEYED_BY_GIT, OTHERS_IN_GIT, PathWatch, ProtectedPaths
from mcp_server.model.files import is_protected
from mcp_server.model.results import Code, Problem, Refusal


def find_obeyed_by_git(workspace: Path, folders: tuple[str, ...]) -> frozenset[Path]:
    """Find files in these repository folders that make git run programs."""
    names = (*OBEYED_BY_GIT, *OTHERS_IN_GIT)
    paths = (workspace / folder / name for folder in folders for name in names)
    return frozenset(path for path in paths if os.path.lexists(path))


def remove_planted_files(before: frozenset[Path], workspace: Path, folders: tuple[str, ...]) -> list[Path]:
    """Remove what was not there before; return what was removed."""
    planted = sorted(find_obeyed_by_git(workspace, folders) - before)
    for path in planted:
        with suppress(FileNotFoundError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return [path.relative_to(workspace) for path in planted]


def build_planted_refusal(paths: list[Path]) -> Refusal:
    names = ", ".join(f"`{path}`" for path in paths)
    return Refusal(
        Problem(
            Code.NOT_GRANTED,
            f"A program in this repository created {names}, which would make git run programs; menugate removed it.",
            "Warn the user: this repository may be malicious.",
        )
    )


class PlantedSince:
    """Remembers what existed when a command began."""

    def __init__(self, watch: PathWatch, protected: ProtectedPaths) -> None:
        self._watch = watch
        self._before = self._find_existing(protected)

    def _find_existing(self, protected: ProtectedPaths) -> set[str]:
        # Some are secrets as well, such as `.envrc` and `.npmrc`.
        obeyed = (*protected.list_obeyed_paths(), *filter(is_protected, protected.secret))
        return {path for path in obeyed if os.path.lexists(self._watch.root / path)}

    async def find_planted_paths(self) -> tuple[str, ...]:
        """List what is new. Of a new repository, list only the repository itself."""
        new = self._find_existing(await self._watch.scan_protected_paths()) - self._before
        return tuple(sorted(path for path in new if not any(str(parent) in new for parent in Path(path).parents)))
