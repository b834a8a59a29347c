"""Which workspace files are searched? Not what git ignores, `.git`, menugate's own state or links."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.globs import BadGlob, compile_glob
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.model.results import Refusal

# Does a .gitignore exclude this entry? Rules of its own folder come first, then those of the folders above, as in git.
#
# Our own parser, because the usual one turns each rule into an expression that a hostile .gitignore can keep busy for
# hours. Entries are checked on the way down, so a rule never has to consider what lies below a folder it excluded.

FILE = ".gitignore"
MOST_BYTES = 1 << 20
MOST_RULES = 10_000


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    glob: str
    keeps: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules of one .gitignore, linked to those of the folders above."""

    folder: str
    rules: tuple[IgnoreRule, ...]
    above: "IgnoreRules | None" = None

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """The path is below these rules' folder; both are relative to the workspace."""
        level: IgnoreRules | None = self
        while level is not None:
            inner = path if level.folder == "." else path[len(level.folder) + 1 :]
            for rule in level.rules:
                if (is_folder or not rule.folders_only) and compile_glob(rule.glob).match(inner):
                    return not rule.keeps
            level = level.above
        return False


NOTHING = IgnoreRules(".", ())


def parse_ignore_rules(text: str) -> tuple[IgnoreRule, ...]:
    """Parse a .gitignore into rules, last first, because the last match decides."""
    rules = [
        rule for line in text.split("\n")[:MOST_RULES] if (rule := _parse_rule(line.removesuffix("\r"))) is not None
    ]
    return tuple(reversed(rules))


def _parse_rule(line: str) -> IgnoreRule | None:
    if line.startswith("#"):
        return None
    bare = line.rstrip(" ")
    if len(bare) < len(line) and bare.endswith("\\") and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += " "
    keeps = bare.startswith("!")
    pattern = bare[keeps:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None
    glob = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"
    try:
        compile_glob(glob)
    except BadGlob:
        return None
    return IgnoreRule(glob, keeps, folders_only)


GIT = ".git"
ASK_THE_CLOCK = 512


@dataclass(frozen=True, slots=True)
class WalkEntry:
    """An entry of a folder that stays open while the entry is used."""

    place: JailPath
    is_folder: bool
    stats: os.stat_result

    @property
    def mtime_ns(self) -> int:
        return self.stats.st_mtime_ns


class Walk:
    """Walks down from one folder; opens each folder on its own beneath the workspace, with names in order."""

    def __init__(self, jail: Jail, start: str, deadline: SearchDeadline, most: int | None = None) -> None:
        """`most`: how many entries of one folder are read, in whatever order the disk lists them."""
        self._jail, self._start, self._deadline, self._most = jail, start, deadline, most
        self.complete = True
        self.timed_out = False

    def walk_files(self) -> Iterator[WalkEntry]:
        todo: list[tuple[str, IgnoreRules]] = [(self._start, load_rules_above(self._jail, self._start))]
        while todo:
            path, rules = todo.pop()
            folders: list[tuple[str, IgnoreRules]] = []
            for found, inner in self.walk_folder(path, rules):
                if self.timed_out:
                    return
                if found.is_folder:
                    folders.append((found.place.path, inner))
                else:
                    yield found
            todo += reversed(folders)

    def walk_folder(self, path: str, rules: IgnoreRules) -> Iterator[tuple[WalkEntry, IgnoreRules]]:
        """Yield a folder's plain files and folders that no rule excludes, with the rules that apply below them."""
        try:
            folder = self._jail.open_folder(path)
        except Refusal:  # gone, swapped or private by now
            return
        try:
            rules = add_folder_rules(self._jail, folder, path, rules)
            with os.scandir(folder) as listing:
                entries = sorted(islice(listing, self._most), key=lambda entry: entry.name)
                self.complete &= next(listing, None) is None
            for at, entry in enumerate(entries):
                if at % ASK_THE_CLOCK == 0 and self._deadline.is_over:
                    self.complete, self.timed_out = False, True
                    return
                if found := self._build_entry(folder, path, entry, rules):
                    yield found, rules
        except OSError:
            self.complete = False
        finally:
            os.close(folder)

    def _build_entry(self, folder: int, above_it: str, entry: os.DirEntry[str], rules: IgnoreRules) -> WalkEntry | None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == GIT or not (is_folder or entry.is_file(follow_symlinks=False)):
            return None
        path = entry.name if above_it == "." else f"{above_it}/{entry.name}"
        if rules.is_ignored(path, is_folder) or self._jail.is_private(folder, entry.name):
            return None
        try:
            stats = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        return WalkEntry(JailPath(folder, entry.name, path, False), is_folder, stats)


def load_rules_above(jail: Jail, start: str) -> IgnoreRules:
    """Load the rules that the folders above impose on the start. A caller who names an ignored folder wants it
    searched, so if they exclude the start itself, none of them apply."""
    rules = NOTHING
    names = [] if start == "." else start.split("/")
    for depth in range(len(names)):
        path = "/".join(names[:depth]) or "."
        with suppress(Refusal):
            folder = jail.open_folder(path)
            try:
                rules = add_folder_rules(jail, folder, path, rules)
            finally:
                os.close(folder)
    if any(rules.is_ignored("/".join(names[: depth + 1]), True) for depth in range(len(names))):
        return NOTHING
    return rules


def add_folder_rules(jail: Jail, folder: int, path: str, rules: IgnoreRules) -> IgnoreRules:
    """Add the rules of this open folder's own .gitignore, if it has one."""
    try:
        file = jail.open_at(JailPath(folder, FILE, f"{path}/{FILE}", False), os.O_RDONLY)
    except (OSError, Refusal):
        return rules
    with os.fdopen(file, "rb") as source:
        found = parse_ignore_rules(source.read(MOST_BYTES).decode("utf-8", "surrogateescape"))
    return IgnoreRules(path, found, rules) if found else rules
