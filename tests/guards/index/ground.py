"""A workspace with an index, and the same things found without one: by reading every file from end to end."""

import re
import sqlite3
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_server.guards.index.index import WorkspaceIndex
from mcp_server.guards.jail import Jail
from mcp_server.model.index import Freshness, IndexHits, IndexRequest, Symbols

GENEROUS: dict[str, Any] = {"limit": 10**6, "seconds": 60.0}


@dataclass
class AheadClock:
    """Far enough ahead that no file looks as if it was changed a moment ago, unless a test says otherwise."""

    ahead_ns: int = 10**15

    def __call__(self) -> int:
        import time

        return time.time_ns() + self.ahead_ns


@dataclass
class IndexWorkspace:
    root: Path
    clock: AheadClock = field(default_factory=AheadClock)

    def __post_init__(self) -> None:
        self.state = self.root / ".menugate"
        self.state.mkdir(exist_ok=True)
        self.cache = self.state / "index.db"
        self.index = self.another()

    def another(self, cache: Path | None = None) -> WorkspaceIndex:
        return WorkspaceIndex(Jail(self.root, (self.state,)), cache or self.cache, self.clock)

    def put(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def refresh(self) -> Freshness:
        now = self.index.refresh(self.index.get_refresh_mark(), 60)
        assert now.complete
        return now

    def find(self, query: str, **wanted: Any) -> list[tuple[str, int]]:
        self.refresh()
        return [(hit.path, hit.line) for hit in self.hits(query, **wanted).shown]

    def hits(self, query: str, **wanted: Any) -> IndexHits:
        return self.index.search(IndexRequest(query, **(GENEROUS | wanted)))

    def symbols(self, query: str = "", **wanted: Any) -> Symbols:
        self.refresh()
        return self.index.find_symbols(IndexRequest(query, **(GENEROUS | wanted)))

    def held(self) -> dict[str, tuple[Any, ...]]:
        """Everything that is known, by path; but not when it was learned."""
        return held(self.cache)


def held(cache: Path) -> dict[str, tuple[Any, ...]]:
    link = sqlite3.connect(cache)
    try:
        found: dict[str, tuple[Any, ...]] = {}
        for id, folder, name, digest, left_out in link.execute("SELECT id, folder, name, digest, left_out FROM files"):
            words = [row[0] for row in link.execute("SELECT held FROM words WHERE rowid = ?", (id,))]
            symbols = link.execute(
                "SELECT name, folded, kind, line, last, within, text FROM symbols WHERE file = ? ORDER BY line, name",
                (id,),
            ).fetchall()
            found[f"{folder.decode()}/{name.decode()}"] = (digest, left_out, words, symbols)
        loose = link.execute("SELECT count(*) FROM words WHERE rowid NOT IN (SELECT id FROM files)").fetchone()[0]
        loose += link.execute("SELECT count(*) FROM symbols WHERE file NOT IN (SELECT id FROM files)").fetchone()[0]
        assert loose == 0, "words or symbols of no file"
        return found
    finally:
        link.close()


def by_git(root: Path) -> list[str]:
    """The files that git does not ignore, as git itself says."""
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True
    )
    names = [name for name in listed.stdout.decode().split("\0") if name and not name.startswith(".menugate/")]
    return [name for name in names if (root / name).is_file() and not (root / name).is_symlink()]


def pieces(word: str) -> list[str]:
    """The parts of a name, found by walking along it."""
    if not word.isascii():
        return [part.casefold() for part in word.split("_") if part]
    parts: list[str] = []
    for sign in word:
        last = parts[-1][-1] if parts and parts[-1] else ""
        if sign == "_" or not last:
            parts.append("" if sign == "_" else sign)
        elif sort(sign) != sort(last) and not (last.isupper() and sign.islower() and len(parts[-1]) == 1):
            if last.isupper() and sign.islower():
                parts[-1] = parts[-1][:-1]
                parts.append(last + sign)
            else:
                parts.append(sign)
        else:
            parts[-1] += sign
    return [part.casefold() for part in parts if part]


def sort(sign: str) -> str:
    return "digit" if sign.isdigit() else "upper" if sign.isupper() else "lower"


def scanned(root: Path, names: Iterable[str], query: str) -> dict[tuple[str, int], int]:
    """The lines that fit, with how many terms are on each: every file read, every line looked at."""
    terms = re.findall(r'"[^"]*"|\w+\*?', query)
    found: dict[tuple[str, int], int] = {}
    for name in names:
        lines = (root / name).read_text().split("\n")
        on = [{term for term in set(map(str.casefold, terms)) if spoken(term, line)} for line in lines]
        if set().union(*on) == set(map(str.casefold, terms)):
            found |= {(name, number): len(there) for number, there in enumerate(on, 1) if there}
    return found


def spoken(term: str, line: str) -> bool:
    if term.startswith('"'):
        return term.strip('"') in line.casefold()
    every = [word for run in re.findall(r"\w+", line) for word in (run.casefold(), *pieces(run))]
    if term.endswith("*"):
        return any(word.startswith(term[:-1]) for word in every)
    return term in every
