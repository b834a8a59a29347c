"""What stands against these steps? A call that only makes new paths loses nothing, and needs nobody.

Each step is judged as if those before it had succeeded, and also as if they had not: a path that one of them would make
counts as taken, and one that it would move away as well.
"""

import os
import posixpath
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mcp_server.guards.jail import Jail, JailPath, join_path
from mcp_server.model.path_steps import MAKING, PathStep
from mcp_server.model.protected import describe_change_risk, describe_move_risk, describe_read_risk
from mcp_server.model.results import Refusal
from mcp_server.model.text import quote_text
from mcp_server.model.tools import Demand

TEMPORARY = "/tmp"  # noqa: S108  # each command has its own, which is empty when it starts
MOST_BELOW = 2_000
MOST_MATCHED = 500
SIGNS = "*?["
PLAIN_SIGNS = frozenset("_.,+- ")
"""In a name that a pattern fits, besides letters and digits. To a program, `=`, `@` and `:` can mean more."""
CANNOT_TELL = "menugate cannot tell what is there"


class Obstacle(Exception):
    """Stands against a step; the text says what it is, for the person."""


def ease_demand(demand: Demand, jail: Jail, beside: Sequence[str] = ()) -> Demand:
    """Drop the question if nothing stands against the call's steps; otherwise say in it what does."""
    if demand.confirm is None or not demand.steps:
        return demand
    obstacle = find_obstacle(jail, demand.steps, beside)
    return replace(demand, confirm=f"{demand.confirm}, and {obstacle}" if obstacle else None)


def find_obstacle(jail: Jail, steps: Sequence[PathStep], beside: Sequence[str] = ()) -> str:
    """`beside`: what else runs and may change files meanwhile."""
    if beside and any(step.does == "matches" for step in steps):
        return f"{quote_text(beside[0])}, which runs meanwhile, may change which names a pattern fits"
    trial = _StepTrial(jail)
    try:
        for step in steps:
            trial.take(step)
    except Obstacle as obstacle:
        return str(obstacle)
    except (Refusal, OSError, ValueError):
        return CANNOT_TELL
    return ""


@dataclass
class _StepTrial:
    jail: Jail
    made: dict[str, str] = field(default_factory=dict[str, str])
    """What the steps so far would make: the kind of each path."""
    filled: set[str] = field(default_factory=set[str])
    """Folders that came with what is in them."""
    changed: str = ""
    """A program that may have changed anything by now."""

    def take(self, step: PathStep) -> None:
        if self.changed and step.does in MAKING:
            raise Obstacle(f"{quote_text(self.changed)} may change what is there before that")
        match step.does:
            case "changes":
                self.changed = self.changed or step.paths[0]
            case "enters":
                self._enter(step)
            case "makes folders":
                for path in step.paths:
                    self._add_folder(self._place(step.folder, path), step.whole)
            case "makes files":
                for path in step.paths:
                    self._add(self._place(step.folder, path), "file")
            case "matches":
                for pattern in step.patterns:
                    self._require_plain_names(step.folder, pattern)
            case "copies" | "moves" | "links":
                self._make(step)

    def _enter(self, step: PathStep) -> None:
        kind = self._look(step.folder)
        is_new = _fold(step.folder) in self.made
        if kind != "folder" or (is_new and not step.guards):
            raise Obstacle(f"the line may not get into {quote_text(step.folder)}")

    def _add(self, path: str, kind: str) -> None:
        if self._look(path) == "missing":
            self.made[_fold(path)] = kind

    def _add_folder(self, path: str, around: bool) -> None:
        while path not in ("", ".", "/"):
            self._add(path, "folder")
            if not around:
                return
            path = posixpath.dirname(path)

    def _require_plain_names(self, folder: str, pattern: str) -> None:
        first, deeper, _ = pattern.partition("/")
        for name in self._list_matches(folder, "*" if deeper else first):
            if not _is_plain_name(name):
                raise Obstacle(f"{quote_text(pattern)} may fit {quote_text(name)}, which could mean more than a file")

    def _list_matches(self, folder: str, pattern: str) -> list[str]:
        """List every name that the pattern could fit, and perhaps more."""
        if self._look(folder) != "folder":
            return []
        start, end = _find_ends(pattern)
        names = {posixpath.basename(path) for path in self.made if (posixpath.dirname(path) or ".") == _fold(folder)}
        if not folder.startswith("/") and _fold(folder) not in self.made:
            names.update(self._list_names(folder))
        found = [
            name
            for name in sorted(names)
            if _fold(name).startswith(_fold(start))
            and _fold(name).endswith(_fold(end))
            and (start or not name.startswith("."))
        ]
        if len(found) > MOST_MATCHED:
            raise Obstacle(f"{quote_text(pattern)} fits more than {MOST_MATCHED:,} names")
        return found

    def _list_names(self, folder: str) -> list[str]:
        opened = self.jail.open_folder(folder, exact=True)
        try:
            with os.scandir(opened) as entries:
                return [entry.name for entry in entries]
        finally:
            os.close(opened)

    # Does a copy, a move or a link make only new paths?

    def _make(self, step: PathStep) -> None:
        sources = [*step.paths, *self._expand(step)]
        into = self._place(step.folder, step.into)
        kind = self._look(into)
        if kind == "link":
            raise Obstacle(f"{quote_text(step.into)} is a link")
        is_folder = kind == "folder" and not step.exact
        if is_folder and _fold(into) in self.filled:
            raise Obstacle(CANNOT_TELL)
        taken: set[str] = set()
        for source in sources:
            target = join_path(into, _get_own_name(source)) if is_folder else into
            if _fold(target) in taken:
                raise Obstacle(f"several of its files would become {quote_text(target)}")
            taken.add(_fold(target))
            self._require_new(target, step)
            (self._link if step.does == "links" else self._carry)(source, target, step)

    def _expand(self, step: PathStep) -> Iterator[str]:
        for pattern in step.patterns:
            above, name = posixpath.split(pattern)
            folder = self._place(step.folder, above or ".")
            yield from (posixpath.join(above, one) for one in self._list_matches(folder, name))

    def _require_new(self, target: str, step: PathStep) -> None:
        kind = self._look(target)
        if kind != "missing" and not (step.keeps and kind == "file"):
            raise Obstacle(f"{quote_text(target)} is there already")
        above = posixpath.dirname(target) or "."
        if self._look(above) == "link":
            raise Obstacle(f"{quote_text(above)} is a link")

    def _link(self, text: str, target: str, step: PathStep) -> None:
        """Nothing may get a second name that leads out of the workspace, or to what others obey."""
        end = self._place(posixpath.dirname(target) or ".", text)
        if end.startswith(TEMPORARY) or self._look(end) == "link":
            raise Obstacle(f"{quote_text(text)} may lead elsewhere")
        if risk := describe_change_risk(end, target):
            raise Obstacle(risk.rstrip("."))
        self._add(target, "link")

    def _carry(self, source: str, target: str, step: PathStep) -> None:
        moves = step.does == "moves"
        start = self._place(step.folder, source)
        kind = self._look(start)
        if kind not in ("file", "folder") and not (kind == "link" and moves and not source.endswith("/")):
            raise Obstacle(f"{quote_text(source)} is {'not there' if kind == 'missing' else 'neither file nor folder'}")
        if moves and target.startswith(TEMPORARY) and not start.startswith(TEMPORARY):
            raise Obstacle(f"{quote_text(target)} is gone when the line ends")
        if risk := describe_move_risk(start, target) if moves else _describe_copy_risk(start, target):
            raise Obstacle(risk.rstrip("."))
        self._add(target, kind)
        if kind == "folder" and (moves or step.whole):
            self.filled.add(_fold(target))
            self._require_plain_tree(start, target, moves)

    def _require_plain_tree(self, start: str, target: str, moves: bool) -> None:
        if start == "." or _fold(start) in self.made:
            raise Obstacle(f"menugate does not look through {quote_text(start)} for this")
        with self.jail.open_place(start, follow=False, reading=True) as place:
            if self.jail.has_private_below(place) or (moves and self.jail.is_installed(place)):
                raise Obstacle(f"menugate itself needs what is in {quote_text(start)}")
        below = self.jail.list_beneath(start, MOST_BELOW)
        if below is None:
            raise Obstacle(f"{quote_text(start)} has more than {MOST_BELOW:,} files in it")
        for path in below:
            risk = _describe_copy_risk(f"{start}/{path}", f"{target}/{path}")
            if risk := risk or (describe_change_risk(f"{start}/{path}") if moves else None):
                raise Obstacle(risk.rstrip("."))

    # What is there?

    def _place(self, folder: str, word: str) -> str:
        """Return the path below the workspace, or in the command's own temporary folder."""
        here = folder
        for name in word.split("/") if ".." in word.split("/") else ():
            # Behind a link, `..` is another folder than the text says.
            if name == ".." and (word.startswith("/") or self._look(here) != "folder"):
                raise Obstacle(f"it is not known where {quote_text(word)} leads")
            here = posixpath.normpath(posixpath.join(here, name))
        clean = re.sub("^/+", "/", posixpath.normpath(posixpath.join(folder, word)))
        try:
            return self.jail.to_relative(clean)
        except Refusal:
            if clean == TEMPORARY or clean.startswith(f"{TEMPORARY}/"):
                return clean
            raise Obstacle(f"{quote_text(word)} lies outside the workspace") from None

    def _look(self, path: str) -> str:
        made = self.made.get(_fold(path), "missing")
        if any(_fold(path).startswith(f"{folder}/") for folder in self.filled):
            raise Obstacle(CANNOT_TELL)
        if path.startswith(TEMPORARY):
            return "folder" if path == TEMPORARY else made
        with self.jail.open_deepest(path, follow=False, reading=True) as (place, missing):
            if join_path(place.path, missing) != path:
                raise Obstacle(f"{quote_text(path)} is behind a link")
            return made if missing else _describe_kind(place)


def _describe_kind(place: JailPath) -> str:
    found = place.stat()
    if found is None:
        return "missing"
    for kind, fits in (("folder", stat.S_ISDIR), ("file", stat.S_ISREG), ("link", stat.S_ISLNK)):
        if fits(found.st_mode):
            return kind
    return "other"


def _describe_copy_risk(source: str, target: str) -> str | None:
    return describe_read_risk(source) or describe_change_risk(target)


def _get_own_name(source: str) -> str:
    name = posixpath.basename(source.rstrip("/"))
    # Of `x/.`, and with some programs of `x/`, it is what is in the folder that goes there.
    if name in ("", ".", "..") or source.endswith("/"):
        raise Obstacle(f"what is in {quote_text(source)} would go into a folder that is there")
    return name


def _find_ends(pattern: str) -> tuple[str, str]:
    """Return what stands in front of the first sign of a pattern, and behind the last one."""
    at = [number for number, sign in enumerate(pattern) if sign in SIGNS + "]"]
    return (pattern[: at[0]], pattern[at[-1] + 1 :]) if at else (pattern, pattern)


def _is_plain_name(name: str) -> bool:
    is_printed = all(sign.isalnum() or sign in PLAIN_SIGNS for sign in name)
    return is_printed and not name.startswith(("-", "+", " "))


def _fold(path: str) -> str:
    """Write it as a disk might read it that ignores case."""
    return unicodedata.normalize("NFC", path).casefold()
