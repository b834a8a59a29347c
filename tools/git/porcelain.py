"""What did git print? Parses its machine-readable formats; every path is bytes, as it is on disk."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

STATUS_WORDS = {
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


class FileChange(Struct, frozen=True):
    """One file in a comparison."""

    status: str
    """A key of STATUS_WORDS."""
    path: bytes
    old_path: bytes | None = None
    """The path it was renamed or copied from."""
    added: int | None = None
    """Lines; None if git does not count them, as in binary files."""
    removed: int | None = None
    old_mode: str = ""
    new_mode: str = ""
    blob: str = ""
    """The object name of its content now; zeros if git has not computed it."""

    @property
    def status_word(self) -> str:
        return STATUS_WORDS.get(self.status, self.status)

    @property
    def is_submodule(self) -> bool:
        return SUBMODULE in (self.old_mode, self.new_mode)

    @property
    def is_link(self) -> bool:
        return self.new_mode == LINK

    @property
    def mode_note(self) -> str:
        """Say whether it became executable, or stopped being so."""
        if self.old_mode == self.new_mode or self.is_submodule:
            return ""
        if self.new_mode == PROGRAM:
            return "now executable" if self.old_mode.strip("0") else "executable"
        return "no longer executable" if self.old_mode == PROGRAM and self.new_mode.strip("0") else ""


def parse_changes(output: bytes) -> list[FileChange]:
    """Parse the output of `--raw --numstat -z`; leave out a last record that was cut short."""
    fields = output.split(b"\0")[:-1][::-1]
    raw: dict[bytes, FileChange] = {}
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    while fields:
        field = fields.pop()
        if field.startswith(b":"):
            change = _parse_change(field, fields)
            # Git lists a file in conflict twice: as unmerged, and with its content in the worktree.
            if change and not (change.path in raw and raw[change.path].status == "U"):
                raw[change.path] = change
        else:
            _parse_counts(field, fields, counts)
    return [_add_counts(change, *counts.get(change.path, (None, None))) for change in raw.values()]


def _parse_change(field: bytes, rest: list[bytes]) -> FileChange | None:
    old_mode, new_mode, _, blob, status = field[1:].decode("ascii").split(" ")
    paths = 2 if status[0] in "RC" else 1
    if len(rest) < paths:
        return None
    old_path = rest.pop() if paths == 2 else None
    return FileChange(status[0], rest.pop(), old_path, None, None, old_mode, new_mode, blob)


def _parse_counts(field: bytes, rest: list[bytes], counts: dict[bytes, tuple[int | None, int | None]]) -> None:
    parts = field.split(b"\t", 2)
    if len(parts) < 3:
        return
    added, removed, path = parts
    if not path:  # a rename: the old and the new path are fields of their own
        if len(rest) < 2:
            return
        rest.pop()
        path = rest.pop()
    counts[path] = (_parse_number(added), _parse_number(removed))


def _parse_number(field: bytes) -> int | None:
    return None if field == b"-" else int(field)


def _add_counts(change: FileChange, added: int | None, removed: int | None) -> FileChange:
    return replace(change, added=added, removed=removed)


class StatusEntry(Struct, frozen=True):
    """One file in a status: how its last commit, the index and the worktree differ."""

    staged: str
    """A key of STATUS_WORDS, or empty."""
    unstaged: str
    path: bytes
    old_path: bytes | None = None
    conflict: str = ""
    """A key of CONFLICTS, or empty."""
    submodule: str = ""
    """What changed in a submodule: `C` its commit, `M` its files, `U` for untracked files."""
    untracked: bool = False


class GitStatus(Struct, frozen=True):
    commit: str | None
    """None before the first."""
    branch: str | None
    """None if the head is detached."""
    upstream: str | None
    ahead: int | None
    behind: int | None
    entries: tuple[StatusEntry, ...]


def parse_status(output: bytes) -> GitStatus:
    """Parse the output of `status --porcelain=v2 --branch -z`."""
    fields = output.split(b"\0")[:-1][::-1]
    headers: dict[str, str] = {}
    entries: list[StatusEntry] = []
    while fields:
        field = fields.pop()
        if field.startswith(b"# "):
            name, _, value = field[2:].partition(b" ")
            headers[name.decode("ascii")] = value.decode("utf-8", "surrogateescape")
        elif entry := _parse_entry(field, fields):
            entries.append(entry)
    ahead, _, behind = headers.get("branch.ab", "").partition(" ")
    commit, branch = headers.get("branch.oid", ""), headers.get("branch.head", "")
    return GitStatus(
        None if commit in ("", "(initial)") else commit,
        None if branch in ("", "(detached)") else branch,
        headers.get("branch.upstream"),
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
    old_path = rest.pop() if kind == b"2" and rest else None
    codes, submodule = parts[0].decode("ascii"), parts[1].decode("ascii")
    staged, unstaged = (code.replace(".", "") for code in codes)
    return StatusEntry(staged, unstaged, parts[-1], old_path, submodule=submodule[1:].replace(".", ""))


def parse_rows(output: bytes, width: int) -> Iterator[list[bytes]]:
    """Split NUL-terminated fields into rows of `width`; leave out a last row that was cut short."""
    fields = output.split(b"\0")[:-1]
    for start in range(0, len(fields) - width + 1, width):
        yield fields[start : start + width]
