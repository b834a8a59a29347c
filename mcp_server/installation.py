"""Where is menugate installed? Its interpreter, the folders Python imports from, and the operator's files.

A program that can write there decides what runs next outside every sandbox, in this process and in the user's next
command. So no call may change these places below `unrestricted`; when in doubt, a place is on the list.
"""

import os
import shutil
import site
import stat
import sys
import sysconfig
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import mcp_server
from mcp_server.config.load import Configuration
from mcp_server.model.processes import CACHES
from mcp_server.model.text import format_count
from mcp_server.settings import Settings

if TYPE_CHECKING:
    from mcp_server.guards.sandbox.access import HostPaths

MAX_LINKS = 40
MAX_LOOKED = 200_000
"""How many entries below a folder are searched for second names of our files."""
MAX_FILES, MAX_FOLDERS = 8, 64
BY_COPY = "uv tool install --link-mode=copy"


def find_installation_places(settings: Settings, configuration: Configuration | None = None) -> tuple[Path, ...]:
    """Every place with its links resolved, the folders of those links, and the places where a command could write to
    one of our files by a second name."""
    places = tuple(
        dict.fromkeys(place for named in find_named_places(settings, configuration) for place in _follow_links(named))
    )
    return (*places, *find_second_names(settings.workspace, settings.home, places))


def build_host_paths(configuration: Configuration, settings: Settings) -> "HostPaths":
    """Find what the programs started by a call need to know about this machine."""
    from mcp_server.guards.sandbox.access import HostPaths  # which only calls need

    return HostPaths(
        workspace=settings.workspace,
        home=settings.home,
        private=settings.protected_places,
        # The programs installed together with menugate come last.
        search_path=os.pathsep.join((settings.search_path, sysconfig.get_path("scripts"))),
        variables=dict(settings.variables),
        outside=dict(settings.variables_outside),
        installation=find_installation_places(settings, configuration),
    )


def find_places_in_workspace(settings: Settings, configuration: Configuration | None = None) -> list[str]:
    """Find the places inside the workspace, by their path there; `.` is the whole workspace."""
    places = {
        place for place in find_installation_places(settings, configuration) if place.is_relative_to(settings.workspace)
    }
    # The operator's own file cannot even be read, and is protected elsewhere.
    protected = set(settings.protected_places)
    outermost = [
        place for place in places if places.isdisjoint(place.parents) and protected.isdisjoint((place, *place.parents))
    ]
    return sorted(str(place.relative_to(settings.workspace)) for place in outermost)


LOOKING = threading.Lock()


def find_linked_files() -> frozenset[tuple[int, int]]:
    """Find device and inode of our files with names elsewhere (hardlinks), which no sandbox can know. Looked up
    once, after the first list was sent; a call that arrives meanwhile waits for it."""
    with LOOKING:
        return _scan_linked_files()


@cache
def _scan_linked_files() -> frozenset[tuple[int, int]]:
    packages = [
        Path(folder_path) for folder_path in sys.path if Path(folder_path).name in ("site-packages", "dist-packages")
    ]
    ours = [Path(mcp_server.__file__).parents[1] / name for name in ("mcp_server", "tools", "menus", "prompts")]
    modules = [getattr(folder_path, "__file__", None) for folder_path in list(sys.modules.values())]
    names_of: dict[tuple[int, int, int], set[str]] = {}
    for folder in dict.fromkeys((*packages, *ours, Path(sys.prefix) / "bin", Path(os.__file__).parent)):
        others = {str(folder_path) for folder_path in packages if folder_path != folder}
        for file in _find_files(str(folder), others):
            with suppress(OSError):
                _note_link(names_of, file.path, file.stat(follow_symlinks=False))
    for file in (*modules, os.path.realpath(sys.executable)):
        with suppress(OSError):
            if file:
                _note_link(names_of, file, os.lstat(file))
    return frozenset((device, inode) for (device, inode, count), names in names_of.items() if len(names) < count)


def _find_files(folder: str, others: Collection[str]) -> Iterator[os.DirEntry[str]]:
    """Yield every entry below it that is not a folder. There are tens of thousands, so this does little with each."""
    todo = [folder]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry
                elif entry.path not in others:
                    todo.append(entry.path)


def _note_link(names_of: dict[tuple[int, int, int], set[str]], path: str, status: os.stat_result) -> None:
    if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
        names_of.setdefault((status.st_dev, status.st_ino, status.st_nlink), set()).add(os.path.realpath(path))


@cache
def find_second_names(workspace: Path, home: Path, places: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where else our files have names, in the workspace and in the caches that commands write at `trusted`: the files
    themselves if there are few, else their folders."""
    if not find_linked_files():
        return ()
    second_names: list[Path] = []
    for root in (workspace, *(home / path for path in CACHES.split())):
        names = list(_find_names_below(root, frozenset(map(str, places))))
        around = {path.parent for path in names}
        folders = {path for path in around if around.isdisjoint(path.parents)}
        if len(folders) > MAX_FOLDERS:
            folders = {root / path.relative_to(root).parts[0] if path != root else root for path in folders}
        second_names += names if len(names) <= MAX_FILES else sorted(folders)
    return tuple(dict.fromkeys(second_names))


def _find_names_below(root: Path, places: frozenset[str]) -> Iterator[Path]:
    inodes, looked, todo = {inode for _, inode in find_linked_files()}, 0, [str(root)]
    if str(root) in places:
        return  # protected as a whole
    while todo and looked < MAX_LOOKED:
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                looked += 1
                if entry.path in places:
                    continue  # protected by its first name
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                # A folder on another disk may use the same number.
                elif entry.inode() in inodes and _read_inode(entry) in find_linked_files():
                    yield Path(entry.path)


def _read_inode(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # it has disappeared meanwhile
        return 0, 0
    return status.st_dev, status.st_ino


def describe_installation(places: Iterable[str], shared: int = 0) -> str:
    """Describe for the user where menugate is installed, and whether a call could change it."""
    names = ", ".join("the whole workspace" if place == "." else place for place in places)
    if shared:
        links = (
            f"{format_count(shared, 'file')} with a second name (hardlink); writing to that name changes menugate. "
            f"Install copies instead: `{BY_COPY}`"
        )
        kept = f"; below `unrestricted`, calls can only read {names}" if names else ", outside the workspace"
        return f"{sys.prefix}{kept}; {links}"
    if not names:
        return f"{sys.prefix}, outside the workspace"
    fix = "To lift this limit, install menugate outside the workspace"
    return f"{names}: no call can change it below `unrestricted`. {fix}"


def find_named_places(settings: Settings, configuration: Configuration | None) -> Iterator[Path]:
    """Yield the places by name, before links are resolved."""
    yield from map(Path, (sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    yield from (Path(entry or ".").absolute() for entry in sys.path)
    if site.ENABLE_USER_SITE:
        # Python imports from there as soon as it exists.
        yield Path(site.getusersitepackages())
    if sys.pycache_prefix:
        yield Path(sys.pycache_prefix).absolute()
    yield from _find_module_places(settings.workspace)
    yield from _find_command_places(settings.search_path)
    yield from settings.named
    yield from settings.menus
    if configuration is not None:
        config = configuration.library.config
        yield from (*config.menus, *([config.prompts] if config.prompts else []))
        yield from (Path(folder) for pack in configuration.packs for folder in pack.menus)


def _find_module_places(workspace: Path) -> Iterator[Path]:
    """Yield packages outside the search path, and those that contain the workspace."""
    data = Path(mcp_server.__file__).parents[1]
    yield from (data / name for name in ("menus", "prompts"))
    known = tuple(f"{location}/" for location in (sys.prefix, sys.base_prefix, *sys.path) if location)
    for name, module in list(sys.modules.items()):
        attributes = getattr(module, "__dict__", {})
        if "." in name:
            continue
        for location in (attributes.get("__file__"), *(attributes.get("__path__") or ())):
            if not isinstance(location, str):
                continue
            if f"{workspace}/".startswith(f"{location}/"):
                yield workspace
            if not location.startswith(known):
                yield Path(location).absolute()


def _find_command_places(search_path: str) -> Iterator[Path]:
    """Find the `menugate` on the PATH, if it starts this copy; it may be a link."""
    typed = shutil.which("menugate", path=search_path)
    if typed is not None and Path(typed).resolve().is_relative_to(Path(sys.prefix).resolve()):
        yield Path(typed).absolute()


def _follow_links(path: Path) -> Iterator[Path]:
    """Where a path ends, and each link on the way, because a sandbox can only protect a link by its folder. For a path
    that does not exist, the last folder that does: a program could create the rest."""
    here, links = Path("/"), 0
    todo = list(path.absolute().parts[:0:-1])
    while todo:
        name = todo.pop()
        if name in ("", ".", ".."):
            here = here.parent if name == ".." else here
            continue
        try:
            target = str((here / name).readlink())
        except (FileNotFoundError, NotADirectoryError):
            break
        except OSError:  # it exists and is no link
            here /= name
            continue
        yield here
        links += 1
        if links > MAX_LINKS:
            return
        here = Path("/") if target.startswith("/") else here
        todo += target.split("/")[::-1]
    yield here
