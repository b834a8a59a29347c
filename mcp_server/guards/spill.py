"""Where does the rest of a long result go? Into a file beside menugate's state, which `Read` may open for a day.

The folder lies in the workspace, where a sandboxed command may plant anything. So no link in it is followed and no file
overwritten, and a folder that others can write to is not used.
"""

import json
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

# Where may a long text be cut? Between words, never inside one, so that no half of a token stays readable.

MAX_WORD_CHARS = 512
"""A longer word is cut wherever the limit falls: a line of two million characters has no better place."""
NOTICE = 120
"""Characters reserved for the note about what was left out."""


class CutText(Struct, frozen=True):
    """A text in three parts; of the middle one only the size is known."""

    head: str
    tail: str
    left_out: int
    lines_left_out: int
    next_line: int
    """The first line, counted from 1, that the head does not show in full."""

    @property
    def text(self) -> str:
        if not self.left_out:
            return self.head
        lines = f" in {self.lines_left_out:,} lines" if self.lines_left_out > 1 else ""
        return f"{self.head}\n[... {self.left_out:,} characters{lines} left out ...]\n{self.tail}"


def cut_into_parts(text: str, limit: int) -> CutText:
    """Two thirds of the limit go to the beginning, where the answer is; one third to the end, where the error is."""
    if len(text) <= limit:
        return CutText(text, "", 0, 0, text.count("\n") + 2)
    room = max(limit - NOTICE, 0)
    head = text[: _find_gap_before(text, room * 2 // 3)]
    tail = text[_find_gap_after(text, len(text) - (room - room * 2 // 3)) :]
    middle = text[len(head) : len(text) - len(tail)]
    return CutText(head, tail, len(middle), middle.count("\n") + 1, head.count("\n") + 1)


def cut_middle(text: str, limit: int) -> str:
    """At most `limit` characters: the beginning, how much was left out, and the end."""
    return cut_into_parts(text, limit).text[: max(limit, 0)]


def _find_gap_before(text: str, at: int) -> int:
    """Find the last gap at or before this position."""
    for place in range(at, max(at - MAX_WORD_CHARS, 0), -1):
        if text[place - 1].isspace() or text[place].isspace():
            return place
    return at if at > MAX_WORD_CHARS else 0


def _find_gap_after(text: str, at: int) -> int:
    """Find the first gap at or after this position."""
    if at <= 0 or at >= len(text):
        return min(max(at, 0), len(text))
    for place in range(at, min(at + MAX_WORD_CHARS, len(text))):
        if text[place - 1].isspace() or text[place].isspace():
            return place
    return at if len(text) - at > MAX_WORD_CHARS else len(text)


FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ONE_DAY_NS = 24 * 3600 * 10**9
MAX_SAME_NAME = 10_000
SUFFIX = ".txt"
SUFFIXES: Mapping[str, str] = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "application/pdf": ".pdf",
}
"""How the name of a file ends, by the type of what is in it; any other ends in `OTHER_SUFFIX`."""
OTHER_SUFFIX = ".bin"
SPILLED = (SUFFIX, OTHER_SUFFIX, *SUFFIXES.values())
NOTE_ROOM = 1_000


class Spill:
    """Keeps the full text of results that are too long to show. They are redacted before they get here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep_text(self, text: str, name: str) -> Path:
        """Write the text to a new file named roughly `name`; raises `OSError` if that fails."""
        return self._keep(text.encode("utf-8", "backslashreplace"), name, SUFFIX)

    def keep_bytes(self, data: bytes, media_type: str, name: str) -> Path:
        """Write the bytes to a new file named roughly `name`; raises `OSError` if that fails."""
        return self._keep(data, name, SUFFIXES.get(media_type, OTHER_SUFFIX))

    def _keep(self, data: bytes, name: str, suffix: str) -> Path:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or "result"
        folder = self._open_folder(create=True)
        try:
            for number in range(1, MAX_SAME_NAME):
                path = f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}"
                with suppress(FileExistsError):
                    self._write_file(folder, path, data)
                    return self.folder / path
        finally:
            os.close(folder)
        raise FileExistsError(f"{MAX_SAME_NAME} results are named {stem}")

    @staticmethod
    def _write_file(folder: int, path: str, data: bytes) -> None:
        descriptor = os.open(path, NEW_FILE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            os.unlink(path, dir_fd=folder)
            raise

    def remove_old_files(self, older_than_ns: int, now_ns: int) -> int:
        """Remove files written more than `older_than_ns` before `now_ns`; return how many."""
        try:
            folder = self._open_folder(create=False)
        except FileNotFoundError:
            return 0
        try:
            with os.scandir(folder) as found:
                old = [
                    entry.name
                    for entry in found
                    if entry.name.endswith(SPILLED)
                    and entry.is_file(follow_symlinks=False)
                    and now_ns - entry.stat(follow_symlinks=False).st_mtime_ns > older_than_ns
                ]
            for name in old:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            return len(old)
        finally:
            os.close(folder)

    def _open_folder(self, create: bool) -> int:
        """Open the folder itself, neither a link in its place nor a folder that others own or can write to."""
        above = os.open(self.folder.parent, FOLDER)
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(self.folder.name, 0o700, dir_fd=above)
            folder = os.open(self.folder.name, FOLDER, dir_fd=above)
        finally:
            os.close(above)
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            os.close(folder)
            raise PermissionError(f"{self.folder} can be written by others")
        return folder


def spill_long_text(text: str, most: int, spill: Spill, name: str) -> tuple[str, Path | None]:
    """Return at most `most` characters to show and, if that is not everything, the file with the full text."""
    if len(text) <= most:
        return text, None
    shown = cut_into_parts(text, max(most - NOTE_ROOM, most // 2))
    try:
        path = spill.keep_text(text, name)
    except OSError as error:
        note = f"The rest could not be kept ({error.strerror or error}). Ask for less at a time."
        return f"{shown.text}\n\n[{note}]"[:most], None
    call = json.dumps({"file_path": str(path), "offset": shown.next_line}, ensure_ascii=False)
    note = f"{shown.left_out:,} of {len(text):,} characters were cut out of the middle. Continue with Read {call}"
    room = most - len(note) - 4
    return f"{shown.text[: max(room, 0)]}\n\n[{note}]", path


def open_swept_spill(folder: Path) -> Spill:
    """Open the folder and remove files older than a day."""
    spill = Spill(folder)
    spill.remove_old_files(ONE_DAY_NS, time.time_ns())
    return spill
