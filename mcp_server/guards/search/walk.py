"""Which files of the workspace are looked at? Not what git ignores, not `.git`, not our own state, and no links."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search import ignoring
from mcp_server.guards.search.harvest import SearchDeadline
from mcp_server.guards.search.ignoring import NOTHING, IgnoreRules
from mcp_server.model.results import Refusal

GIT = ".git"
ASK_THE_CLOCK = 512


@dataclass(frozen=True, slots=True)
class WalkEntry:
    """An entry of a folder that is held open while it is looked at."""

    place: JailPath
    is_folder: bool
    stats: os.stat_result

    @property
    def mtime_ns(self) -> int:
        return self.stats.st_mtime_ns


class Walk:
    """From one folder down, each folder opened beneath the workspace by itself, names in order."""

    def __init__(self, jail: Jail, start: str, deadline: SearchDeadline, most: int | None = None) -> None:
        """`most`: of a folder with more entries only so many are looked at, whichever the disk names first."""
        self._jail, self._start, self._deadline, self._most = jail, start, deadline, most
        self.complete = True
        self.timed_out = False

    def files(self) -> Iterator[WalkEntry]:
        todo: list[tuple[str, IgnoreRules]] = [(self._start, above(self._jail, self._start))]
        while todo:
            path, rules = todo.pop()
            folders: list[tuple[str, IgnoreRules]] = []
            for found, inner in self.entries(path, rules):
                if self.timed_out:
                    return
                if found.is_folder:
                    folders.append((found.place.path, inner))
                else:
                    yield found
            todo += reversed(folders)

    def entries(self, path: str, rules: IgnoreRules) -> Iterator[tuple[WalkEntry, IgnoreRules]]:
        """The plain files and folders of one folder that no rule leaves out, with the rules that hold below them."""
        try:
            folder = self._jail.open_folder(path)
        except Refusal:  # gone, swapped or ours by now
            return
        try:
            rules = with_rules_of(self._jail, folder, path, rules)
            with os.scandir(folder) as listing:
                entries = sorted(islice(listing, self._most), key=lambda entry: entry.name)
                self.complete &= next(listing, None) is None
            for at, entry in enumerate(entries):
                if at % ASK_THE_CLOCK == 0 and self._deadline.over:
                    self.complete, self.timed_out = False, True
                    return
                if found := self._found(folder, path, entry, rules):
                    yield found, rules
        except OSError:
            self.complete = False
        finally:
            os.close(folder)

    def _found(self, folder: int, above_it: str, entry: os.DirEntry[str], rules: IgnoreRules) -> WalkEntry | None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == GIT or not (is_folder or entry.is_file(follow_symlinks=False)):
            return None
        path = entry.name if above_it == "." else f"{above_it}/{entry.name}"
        if rules.ignores(path, is_folder) or self._jail.is_private(folder, entry.name):
            return None
        try:
            stats = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        return WalkEntry(JailPath(folder, entry.name, path, False), is_folder, stats)


def above(jail: Jail, start: str) -> IgnoreRules:
    """The rules that hold at the start, from the folders above it. Who names an ignored folder wants it searched, so
    rules that would leave out the start itself are not asked."""
    rules = NOTHING
    names = [] if start == "." else start.split("/")
    for depth in range(len(names)):
        path = "/".join(names[:depth]) or "."
        with suppress(Refusal):
            folder = jail.open_folder(path)
            try:
                rules = with_rules_of(jail, folder, path, rules)
            finally:
                os.close(folder)
    if any(rules.ignores("/".join(names[: depth + 1]), True) for depth in range(len(names))):
        return NOTHING
    return rules


def with_rules_of(jail: Jail, folder: int, path: str, rules: IgnoreRules) -> IgnoreRules:
    """The same rules and, where this open folder has a .gitignore of its own, those."""
    try:
        file = jail.open_at(JailPath(folder, ignoring.FILE, f"{path}/{ignoring.FILE}", False), os.O_RDONLY)
    except (OSError, Refusal):
        return rules
    with os.fdopen(file, "rb") as source:
        found = ignoring.read(source.read(ignoring.MOST_BYTES).decode("utf-8", "surrogateescape"))
    return IgnoreRules(path, found, rules) if found else rules
