"""Where does this path lead, and may it be opened? Every operation acts on an open folder and one plain name in it.

Never check a path first and open it afterwards. `open_place` opens the containing folder beneath the workspace; from
then on nobody can swap anything above it. The last name is then opened without following a link.
"""

import errno
import os
import stat
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.openat import FOLDER, MOST_LINKS, Resolve, choose_resolver, read_link_target
from mcp_server.guards.refusals import (
    build_dangling_link_refusal,
    build_file_kind_refusal,
    build_hardlink_refusal,
    build_os_refusal,
    build_outside_refusal,
    build_path_refusal,
    build_private_refusal,
    describe_file_kind,
)
from mcp_server.model.results import Refusal

Identity: TypeAlias = tuple[int, int]
"""Device and inode: identifies a file or folder however its path is spelt."""

ALWAYS = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW
SYSTEM = ("/proc", "/sys", "/dev")
DEEPEST = 1300
"""More steps up than a path of the maximum length can go down."""


class JailPath(Struct, frozen=True):
    """Where something really is, with every link resolved."""

    folder: int
    """The folder that contains it, open for as long as the place is in use."""
    name: str
    """Its name there, `.` for the workspace itself. Never a link, unless the caller asked not to follow links."""
    path: str
    """Its real path below the workspace."""
    linked: bool
    """True if the requested path ends in a link that led here."""

    def stat(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Jail:
    """Confine file access to the workspace. `private` is menugate's own state and never opened; `readable` lies inside
    it and may still be read, so that a result too long to show can be read back. `installation` is what menugate runs
    from: readable, but not changed unless the person allows it."""

    def __init__(
        self,
        root: Path,
        private: tuple[Path, ...] = (),
        readable: tuple[Path, ...] = (),
        allow_hardlinks: bool = False,
        resolve: Resolve | None = None,
        installation: tuple[Path, ...] = (),
    ) -> None:
        self.root = root.resolve(strict=True)
        self._spellings = {os.path.normpath(root.absolute()), str(self.root)}
        self._private, self._readable = private, readable
        self._installation = installation
        self._allow_hardlinks = allow_hardlinks
        self._resolve = resolve or choose_resolver()
        self._top = os.open(self.root, FOLDER)
        weakref.finalize(self, os.close, self._top)
        self._identity = _get_identity(os.fstat(self._top))
        self._system = {Path(path).stat().st_dev for path in SYSTEM if os.path.ismount(path)}

    def to_relative(self, path: str) -> str:
        """Convert a path as written to one below the workspace, `.` for the workspace. Looks at the text only, not the
        disk."""
        if path == "~" or path.startswith("~/"):
            raise build_path_refusal(f"`{path}` is not expanded: `~` has no meaning here.", self._describe_valid_path())
        if path.lower().startswith("file://"):
            raise build_path_refusal(f"`{path}` is a URL, not a path.", self._describe_valid_path())
        return self._normalize_path(path)

    def _normalize_path(self, path: str) -> str:
        if "\0" in path:
            raise build_path_refusal("The path contains a NUL character.", self._describe_valid_path())
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise build_path_refusal(
                "The path contains half a character (a lone surrogate).", self._describe_valid_path()
            ) from None
        clean = os.path.normpath(path or ".")
        if clean.startswith("/"):
            clean = next(
                (found for root in self._spellings if (found := _remove_root_prefix(clean, root)) is not None), ".."
            )
        if clean == ".." or clean.startswith("../"):
            raise build_outside_refusal(path, str(self.root))
        return clean

    def _describe_valid_path(self) -> str:
        return f"Give a path inside the workspace `{self.root}`, absolute or relative to it."

    @contextmanager
    def open_place(self, path: str, follow: bool = True, reading: bool = False) -> Generator[JailPath, None, None]:
        """Yield the real place of a path, with its folder open. The last part need not exist."""
        asked = self._normalize_path(path)
        try:
            here = self._resolve_place(asked, follow)
            try:
                self._check_place(here, asked, reading)
                yield here
            finally:
                os.close(here.folder)
        except OSError as error:
            raise build_os_refusal(error, asked, str(self.root)) from error

    def resolve_links(self, path: str) -> str:
        """Return where the path's links lead, below the workspace. Return the path as written if it has no links or may
        not be opened: the call that opens it gets the refusal."""
        try:
            with self.open_place(path, reading=True) as place:
                return path if place.path == self._normalize_path(path) else place.path
        except (Refusal, OSError):
            return path

    def list_beneath(self, path: str, most: int) -> tuple[str, ...] | None:
        """List everything below a folder, at any depth, by its path from there; links are listed but not followed. None
        if that is more than `most` or cannot be read. A place that may not be opened lists as empty: opening it gives
        the refusal."""
        found: list[str] = []
        try:
            with self.open_place(path, follow=False, reading=True) as place:
                here = place.stat()
                if here is None or place.name == "." or not stat.S_ISDIR(here.st_mode):
                    return ()
                for above, folders, files, _ in os.fwalk(place.name, onerror=_raise, dir_fd=place.folder):
                    start = above[len(place.name) + 1 :]
                    found += [f"{start}/{name}" if start else name for name in (*folders, *files)]
                    if len(found) > most:
                        return None
        except Refusal:
            return ()
        except (OSError, RecursionError):
            return None
        return tuple(found)

    @contextmanager
    def open_deepest(
        self, path: str, follow: bool = True, reading: bool = False
    ) -> Generator[tuple[JailPath, str], None, None]:
        """Yield the place of a path and an empty text; or the deepest folder that exists on the way, and the rest."""
        asked = self._normalize_path(path)
        try:
            here, missing = self._find_deepest(asked, follow)
            try:
                self._check_place(here, path, reading)
                yield here, missing
            finally:
                os.close(here.folder)
        except OSError as error:
            raise build_os_refusal(error, path, str(self.root)) from error

    def _find_deepest(self, asked: str, follow: bool) -> tuple[JailPath, str]:
        for _ in range(MOST_LINKS):
            path, missing = asked, ""
            while True:
                try:
                    here = self._resolve_place(path, follow)
                    break
                except FileNotFoundError:
                    if path == ".":
                        raise
                    above, _, name = path.rpartition("/")
                    path, missing = above or ".", join_path(name, missing)
            if here.stat() is None:
                folder = here.path.rpartition("/")[0] or "."
                return replace(here, name=".", path=folder), join_path(here.name, missing)
            if not missing or here.name == ".":
                return here, missing
            # Somebody made it while we looked.
            os.close(here.folder)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    @contextmanager
    def make_place(
        self, path: str, allow: Callable[[JailPath], None], follow: bool = True, rehearsal: bool = False
    ) -> Generator[JailPath, None, None]:
        """Like `open_place`, but make the folders above that are missing, each from the handle of the one around it.

        `allow` is asked about the place before anything is made. The place it gets is real in all but its name: its
        folder is the deepest one that exists. In a rehearsal, nothing is made.
        """
        with self.open_deepest(path, follow) as (base, missing):
            real = join_path(base.path, missing)
            if missing and base.linked:
                raise build_dangling_link_refusal(real)
            *above, name = missing.split("/") if missing else [base.name]
            first = replace(base, name=above[0] if above else name, path=real)
            allow(first)
            if rehearsal or not above:
                yield first
                return
            folders: list[int] = []
            try:
                for one in above:
                    here = folders[-1] if folders else base.folder
                    with suppress(FileExistsError):
                        os.mkdir(one, dir_fd=here)
                    folders.append(os.open(one, FOLDER | os.O_NOFOLLOW, dir_fd=here))
                made = JailPath(folders[-1], name, real, False)
                self._check_place(made, path, False)
                yield made
            finally:
                for folder in folders:
                    os.close(folder)

    def _resolve_place(self, path: str, follow: bool) -> JailPath:
        wanted = path
        for turn in range(MOST_LINKS):
            head, name = os.path.split(wanted)
            if name in ("", ".", ".."):
                folder, real = self._resolve(self._top, wanted)
                return JailPath(folder, ".", real, turn > 0)
            folder, real = self._resolve(self._top, head or ".")
            try:
                target = read_link_target(folder, name) if follow else None
            except BaseException:
                os.close(folder)
                raise
            if target is None:
                return JailPath(folder, name, name if real == "." else f"{real}/{name}", turn > 0)
            os.close(folder)
            wanted = f"{real}/{target}"
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _check_place(self, place: JailPath, asked: str, reading: bool) -> None:
        """Climb from the place up to the workspace by identity, so that no spelling, link or mount can disguise a
        folder."""
        private = self._find_identities(self._private)
        readable = self._find_identities(self._readable) if reading else set[Identity]()
        if len(private) < len(self._private):
            # What does not exist yet has no identity; its name decides.
            for absent in self._private:
                if not absent.exists() and _remove_root_prefix(str(self.root / place.path), str(absent)) is not None:
                    raise build_private_refusal(asked)
        for identity in self._climb_to_workspace(place):
            if identity in readable:
                return
            if identity in private:
                raise build_private_refusal(asked)
            if identity[0] in self._system:
                raise build_file_kind_refusal(asked, "part of the running system")

    def _climb_to_workspace(self, place: JailPath) -> Iterator[Identity]:
        if found := place.stat():
            yield _get_identity(found)
        step = "."
        for _ in range(DEEPEST):
            identity = _get_identity(os.stat(step, dir_fd=place.folder))
            yield identity
            if identity == self._identity:
                return
            step += "/.."
        raise OSError(errno.EXDEV, "outside")

    @staticmethod
    def _find_identities(paths: tuple[Path, ...]) -> set[Identity]:
        found: set[Identity] = set()
        for path in paths:
            with suppress(FileNotFoundError):
                found.add(_get_identity(path.stat()))
        return found

    def open(self, relative: str, flags: int, mode: int = 0) -> int:
        """Open a plain file. Never waits, never creates through a link, never opens a device, FIFO or socket."""
        with self.open_place(
            relative, reading=not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        ) as place:
            return self.open_at(place, flags, mode)

    def open_at(self, place: JailPath, flags: int, mode: int = 0) -> int:
        found = place.stat()
        if found is not None:
            self._require_plain_file(place, found)
        elif flags & os.O_CREAT and place.linked:
            raise build_dangling_link_refusal(place.path)
        file = os.open(place.name, flags | ALWAYS, mode, dir_fd=place.folder)
        try:
            self._require_plain_file(place, os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return file

    def _require_plain_file(self, place: JailPath, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise build_file_kind_refusal(place.path, describe_file_kind(found.st_mode))
        if found.st_dev in self._system:
            raise build_file_kind_refusal(place.path, "part of the running system")
        if found.st_nlink > 1:
            self._require_single_name(place, found)

    def _require_single_name(self, place: JailPath, found: os.stat_result) -> None:
        # Another name may lie anywhere on the disk, and nothing distinguishes a harmless one from a secret's.
        if not self._allow_hardlinks:
            raise build_hardlink_refusal(place.path, found.st_nlink)
        for private in self._private:
            for folder, _, names in os.walk(private):
                for name in names:
                    with suppress(OSError):
                        if _get_identity(os.lstat(f"{folder}/{name}")) == _get_identity(found):
                            raise build_private_refusal(place.path)

    def open_folder(self, relative: str, exact: bool = False) -> int:
        """Open a folder for listing. `exact`: the path is a real one, so a link on it was put there since."""
        with self.open_place(relative, reading=True) as place:
            if exact and place.path != relative:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            return os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | ALWAYS, dir_fd=place.folder)

    def has_private_below(self, place: JailPath) -> bool:
        """Is any of menugate's own state below this folder? If so, the folder must not be moved."""
        above = [folder for private in self._private for folder in private.resolve().parents]
        found = place.stat()
        return found is not None and _get_identity(found) in self._find_identities(tuple(above))

    def is_installed(self, place: JailPath) -> bool:
        """Does menugate run from this place, from a folder around it, or from something below it?"""
        installed = self._find_identities(self._installation)
        if not installed:
            return False
        found = place.stat()
        above = self._find_identities(tuple({folder for one in self._installation for folder in one.parents}))
        return not installed.isdisjoint(self._climb_to_workspace(place)) or (
            found is not None and _get_identity(found) in above
        )

    def is_private(self, folder: int, name: str) -> bool:
        """Is this name in this open folder menugate's own? For walks, which go from folder to folder without paths."""
        private = self._find_identities(self._private)
        try:
            return _get_identity(os.stat(name, dir_fd=folder, follow_symlinks=False)) in private
        except FileNotFoundError:
            return False


def join_path(folder: str, name: str) -> str:
    return "/".join(part for part in (folder, name) if part not in ("", ".")) or "."


def format_identity(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}"


def _raise(error: OSError) -> None:
    raise error


def _get_identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _remove_root_prefix(path: str, root: str) -> str | None:
    if path == root:
        return "."
    start = root.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None
