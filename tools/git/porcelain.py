"""What did git say? Its formats for programs, read into values; every path is bytes, as it is on disk."""

from collections.abc import Iterator
from dataclasses import dataclass

WORDS = {
    "M": "modified",
    "T": "type changed",
    "A": "added",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "U": "unmerged",
    "X": "unknown",
}
CONFLICTS = {
    "DD": "both deleted",
    "AU": "added by us",
    "UD": "deleted by them",
    "UA": "added by them",
    "DU": "deleted by us",
    "AA": "both added",
    "UU": "both modified",
}
SUBMODULE, LINK, PROGRAM = "160000", "120000", "100755"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file in a comparison."""

    status: str
    """One of WORDS."""
    path: bytes
    old: bytes | None = None
    """Where it was, if it was renamed or copied."""
    added: int | None = None
    """Lines; None where they are not counted, as in binary files."""
    removed: int | None = None
    old_mode: str = ""
    new_mode: str = ""
    blob: str = ""
    """What it is now, by its content; zeros where git does not know."""

    @property
    def status_word(self) -> str:
        return WORDS.get(self.status, self.status)

    @property
    def is_submodule(self) -> bool:
        return SUBMODULE in (self.old_mode, self.new_mode)

    @property
    def is_link(self) -> bool:
        return self.new_mode == LINK

    @property
    def mode_note(self) -> str:
        """What it has become by its mode, where that is not the usual."""
        if self.old_mode == self.new_mode or self.is_submodule:
            return ""
        if self.new_mode == PROGRAM:
            return "now executable" if self.old_mode.strip("0") else "executable"
        return "no longer executable" if self.old_mode == PROGRAM and self.new_mode.strip("0") else ""


def parse_changes(said: bytes) -> list[FileChange]:
    """Of `--raw --numstat -z`; a last record that was cut short is left out."""
    fields = said.split(b"\0")[:-1][::-1]
    raw: dict[bytes, FileChange] = {}
    counted: dict[bytes, tuple[int | None, int | None]] = {}
    while fields:
        field = fields.pop()
        if field.startswith(b":"):
            change = _parse_change(field, fields)
            # A file in conflict is said twice: once unmerged, once with what is in the worktree.
            if change and not (change.path in raw and raw[change.path].status == "U"):
                raw[change.path] = change
        else:
            _parse_counts(field, fields, counted)
    return [_add_counts(change, counted.get(change.path)) for change in raw.values()]


def _parse_change(field: bytes, rest: list[bytes]) -> FileChange | None:
    old_mode, new_mode, _, blob, status = field[1:].decode("ascii").split(" ")
    paths = 2 if status[0] in "RC" else 1
    if len(rest) < paths:
        return None
    old = rest.pop() if paths == 2 else None
    return FileChange(status[0], rest.pop(), old, None, None, old_mode, new_mode, blob)


def _parse_counts(field: bytes, rest: list[bytes], into: dict[bytes, tuple[int | None, int | None]]) -> None:
    parts = field.split(b"\t", 2)
    if len(parts) < 3:
        return
    added, removed, path = parts
    if not path:
        if len(rest) < 2:
            return
        rest.pop()
        path = rest.pop()
    into[path] = (_parse_number(added), _parse_number(removed))


def _parse_number(field: bytes) -> int | None:
    return None if field == b"-" else int(field)


def _add_counts(change: FileChange, counts: tuple[int | None, int | None] | None) -> FileChange:
    added, removed = counts or (None, None)
    return FileChange(
        change.status, change.path, change.old, added, removed, change.old_mode, change.new_mode, change.blob
    )


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """One file in a status: what stands between its last commit, the index and the worktree."""

    staged: str
    """One of WORDS, or empty."""
    unstaged: str
    path: bytes
    old: bytes | None = None
    conflict: str = ""
    """One of CONFLICTS, or empty."""
    submodule: str = ""
    """What is new in a submodule: `C` its commit, `M` its files, `U` files it does not know."""
    untracked: bool = False


@dataclass(frozen=True, slots=True)
class GitStatus:
    commit: str | None
    """None before the first."""
    branch: str | None
    """None where the head is detached."""
    upstream: str | None
    ahead: int | None
    behind: int | None
    entries: tuple[StatusEntry, ...]


def parse_status(said: bytes) -> GitStatus:
    """Of `status --porcelain=v2 --branch -z`."""
    fields = said.split(b"\0")[:-1][::-1]
    heads: dict[str, str] = {}
    entries: list[StatusEntry] = []
    while fields:
        field = fields.pop()
        if field.startswith(b"# "):
            name, _, value = field[2:].partition(b" ")
            heads[name.decode("ascii")] = value.decode("utf-8", "surrogateescape")
        elif entry := _parse_entry(field, fields):
            entries.append(entry)
    ahead, _, behind = heads.get("branch.ab", "").partition(" ")
    commit, branch = heads.get("branch.oid", ""), heads.get("branch.head", "")
    return GitStatus(
        None if commit in ("", "(initial)") else commit,
        None if branch in ("", "(detached)") else branch,
        heads.get("branch.upstream"),
        int(ahead) if ahead else None,
        -int(behind) if behind else None,
        tuple(entries),
    )


def _parse_entry(field: bytes, rest: list[bytes]) -> StatusEntry | None:
    kind, _, tail = field.partition(b" ")
    if kind == b"?":
        return StatusEntry("", "", tail, untracked=True)
    if kind == b"u":
        parts = tail.split(b" ", 9)
        return StatusEntry("", "", parts[9], conflict=parts[0].decode("ascii")) if len(parts) == 10 else None
    if kind not in (b"1", b"2"):
        return None
    parts = tail.split(b" ", 7 if kind == b"1" else 8)
    old = rest.pop() if kind == b"2" and rest else None
    codes, submodule = parts[0].decode("ascii"), parts[1].decode("ascii")
    staged, unstaged = (code.replace(".", "") for code in codes)
    return StatusEntry(staged, unstaged, parts[-1], old, submodule=submodule[1:].replace(".", ""))


def parse_rows(said: bytes, width: int) -> Iterator[list[bytes]]:
    """Of a format that says so many fields a record, each ended by a NUL; a record cut short is left out."""
    fields = said.split(b"\0")[:-1]
    for start in range(0, len(fields) - width + 1, width):
        yield fields[start : start + width]
