"""Which workspace files are searched? All but links, `.git`, menugate's own state and what git ignores."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from msgspec import Struct

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.globs import BadGlob, compile_glob
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.model.results import Refusal

# Does a .gitignore exclude this entry? As in git, the rules of its own folder come first, then those of the folders
# above. The parser is our own, because a hostile .gitignore can keep the usual one (pathspec) busy for hours. We check
# entries on the way down, so a rule never has to consider what is below a folder that it excluded.

GITIGNORE = ".gitignore"
MAX_GITIGNORE_BYTES = 1 << 20
MAX_RULES = 10_000


class IgnoreRule(Struct, frozen=True):
    glob: str
    keeps: bool
    folders_only: bool


class IgnoreRules(Struct, frozen=True):
    """The rules of one .gitignore, linked to those of the folders above."""

    folder: str
    rules: tuple[IgnoreRule, ...]
    above: "IgnoreRules | None" = None

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """`path` is relative to the workspace, and below the folder of these rules."""
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
    """Parse a .gitignore into rules, last first, because the last match wins."""
    rules = [
        rule for line in text.split("\n")[:MAX_RULES] if (rule := _parse_rule(line.removesuffix("\r"))) is not None
    ]
    return tuple(reversed(rules))


def _parse_rule(line: str) -> IgnoreRule | None:
    if line.startswith("#"):
        return None
    trimmed = line.rstrip(" ")
    if len(trimmed) < len(line) and trimmed.endswith("\\") and (len(trimmed) - len(trimmed.rstrip("\\"))) % 2:
        trimmed += " "
    keeps = trimmed.startswith("!")
    pattern = trimmed[keeps:]
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


GIT_FOLDER = ".git"
ENTRIES_BETWEEN_CLOCK_CHECKS = 512


class WalkEntry(Struct, frozen=True):
    """An entry of a folder. The folder stays open until the walk goes on."""

    place: JailPath
    is_folder: bool
    stats: os.stat_result

    @property
    def mtime_ns(self) -> int:
        return self.stats.st_mtime_ns


@contextmanager
def hold_folder_open(jail: Jail, path: str) -> Generator[int]:
    descriptor = jail.open_folder(path, exact=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Walk:
    """Walks down from one folder in order of names, opening each folder anew from the workspace, without links."""

    def __init__(self, jail: Jail, start: str, deadline: SearchDeadline, max_entries: int | None = None) -> None:
        """`max_entries`: how many entries of one folder to read, in whatever order the disk lists them."""
        self._jail, self._start, self._deadline, self._max_entries = jail, start, deadline, max_entries
        self.complete = True
        self.timed_out = False

    def walk_files(self) -> Iterator[WalkEntry]:
        pending: list[tuple[str, IgnoreRules]] = [(self._start, load_rules_above(self._jail, self._start))]
        while pending:
            path, rules = pending.pop()
            folders: list[tuple[str, IgnoreRules]] = []
            for entry, inner in self.walk_folder(path, rules):
                if self.timed_out:
                    return
                if entry.is_folder:
                    folders.append((entry.place.path, inner))
                else:
                    yield entry
            pending += reversed(folders)

    def walk_folder(self, path: str, rules: IgnoreRules) -> Iterator[tuple[WalkEntry, IgnoreRules]]:
        """Yield a folder's plain files and folders that no rule excludes, with the rules that apply below them."""
        try:
            folder = self._jail.open_folder(path, exact=True)
        except Refusal:  # gone, swapped or private by now
            return
        try:
            rules = add_folder_rules(self._jail, folder, path, rules)
            with os.scandir(folder) as listing:
                entries = sorted(islice(listing, self._max_entries), key=lambda entry: entry.name)
                self.complete &= next(listing, None) is None
            for index, entry in enumerate(entries):
                if index % ENTRIES_BETWEEN_CLOCK_CHECKS == 0 and self._deadline.is_over:
                    self.complete, self.timed_out = False, True
                    return
                if walk_entry := self._build_entry(folder, path, entry, rules):
                    yield walk_entry, rules
        except OSError:
            self.complete = False
        finally:
            os.close(folder)

    def _build_entry(
        self, folder: int, folder_path: str, entry: os.DirEntry[str], rules: IgnoreRules
    ) -> WalkEntry | None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == GIT_FOLDER or not (is_folder or entry.is_file(follow_symlinks=False)):
            return None
        path = entry.name if folder_path == "." else f"{folder_path}/{entry.name}"
        if rules.is_ignored(path, is_folder) or self._jail.is_private(folder, entry.name):
            return None
        try:
            stats = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        return WalkEntry(JailPath(folder, entry.name, path, False), is_folder, stats)


def load_rules_above(jail: Jail, start: str) -> IgnoreRules:
    """Load the rules of the folders above the start. If they exclude the start itself, none of them apply: a caller
    who names an ignored folder wants it searched."""
    rules = NOTHING
    names = [] if start == "." else start.split("/")
    for depth in range(len(names)):
        path = "/".join(names[:depth]) or "."
        with suppress(Refusal), hold_folder_open(jail, path) as folder:
            rules = add_folder_rules(jail, folder, path, rules)
    if any(rules.is_ignored("/".join(names[: depth + 1]), True) for depth in range(len(names))):
        return NOTHING
    return rules


def add_folder_rules(jail: Jail, folder: int, path: str, rules: IgnoreRules) -> IgnoreRules:
    """Add the rules of this open folder's own .gitignore, if it has one."""
    try:
        file = jail.open_at(JailPath(folder, GITIGNORE, f"{path}/{GITIGNORE}", False), os.O_RDONLY)
    except (OSError, Refusal):
        return rules
    with os.fdopen(file, "rb") as source:
        own_rules = parse_ignore_rules(source.read(MAX_GITIGNORE_BYTES).decode("utf-8", "surrogateescape"))
    return IgnoreRules(path, own_rules, rules) if own_rules else rules
