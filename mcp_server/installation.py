"""Where does menugate run from? Its interpreter, what Python looks through for modules, and the operator's files.

Whoever can write there decides what runs next outside every sandbox, in this process and in the person's next command.
So no call may change any of it below `unrestricted`, and places are named rather too many than too few.
"""

import os
import shutil
import site
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import mcp_server
from mcp_server.law import Law
from mcp_server.settings import Settings

MOST_LINKS = 40


def installation(settings: Settings, found: Law | None = None) -> tuple[Path, ...]:
    """Every place, as it really lies on the disk, and the folders of the links that lead there."""
    return tuple(dict.fromkeys(place for one in named(settings, found) for place in _on_the_way(one)))


def inside(settings: Settings, found: Law | None = None) -> list[str]:
    """What of it lies in the workspace, by its path there; `.` for all of it."""
    places = {one for one in installation(settings, found) if one.is_relative_to(settings.workspace)}
    # The operator's own file is not even read; what is said of those places holds for it.
    own = set(settings.own)
    outermost = [one for one in places if places.isdisjoint(one.parents) and own.isdisjoint((one, *one.parents))]
    return sorted(str(one.relative_to(settings.workspace)) for one in outermost)


def shared() -> int:
    """How many files of the packages have further names, by which no sandbox knows them."""
    folders = [one for one in sys.path if Path(one).name in ("site-packages", "dist-packages")]
    files = (f"{folder}/{name}" for one in folders for folder, _, names in os.walk(one) for name in names)
    return sum(Path(file).lstat().st_nlink > 1 for file in files)


def described(places: Iterable[str], shared: int = 0) -> str:
    """What was found, for the person."""
    links = f"; {shared:,} of its files have further names (hardlinks), by which they can be changed" if shared else ""
    if not (names := ", ".join("the whole workspace" if one == "." else one for one in places)):
        return f"{sys.prefix}, outside the workspace{links}"
    lifts = "a menugate installed outside the workspace lifts that"
    return f"{names}: no call changes it below `unrestricted`; {lifts}{links}"


def named(settings: Settings, found: Law | None) -> Iterator[Path]:
    """The places by the names that lead there, which may go through links."""
    yield from map(Path, (sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    yield from (Path(one or ".").absolute() for one in sys.path)
    if site.ENABLE_USER_SITE:
        # Python looks there from the moment on that it is there.
        yield Path(site.getusersitepackages())
    if sys.pycache_prefix:
        yield Path(sys.pycache_prefix).absolute()
    yield from _modules(settings.workspace)
    yield from _commands(settings.search_path)
    yield from settings.named
    yield from settings.menus
    if found is not None:
        config = found.library.config
        yield from (*config.menus, *([config.prompts] if config.prompts else []))
        yield from (Path(folder) for pack in found.packs for folder in pack.menus)


def _modules(workspace: Path) -> Iterator[Path]:
    """Packages that were found by another way than the search path, and those that the workspace is a part of."""
    data = Path(mcp_server.__file__).parents[1]
    yield from (data / name for name in ("menus", "prompts"))
    known = tuple(f"{one}/" for one in (sys.prefix, sys.base_prefix, *sys.path) if one)
    for name, module in list(sys.modules.items()):
        about = getattr(module, "__dict__", {})
        if "." in name:
            continue
        for one in (about.get("__file__"), *(about.get("__path__") or ())):
            if not isinstance(one, str):
                continue
            if f"{workspace}/".startswith(f"{one}/"):
                yield workspace
            if not one.startswith(known):
                yield Path(one).absolute()


def _commands(search_path: str) -> Iterator[Path]:
    """What the person types to start this copy, which is a link where it was made to be found everywhere."""
    typed = shutil.which("menugate", path=search_path)
    if typed is not None and Path(typed).resolve().is_relative_to(Path(sys.prefix).resolve()):
        yield Path(typed).absolute()


def _on_the_way(path: Path) -> Iterator[Path]:
    """Where a path ends, and the folder of each link on the way: no sandbox holds a link but by its folder. Of what is
    not there, the last folder that is: elsewhere somebody else could make it."""
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
        except OSError:  # it is there, and no link
            here /= name
            continue
        yield here
        links += 1
        if links > MOST_LINKS:
            return
        here = Path("/") if target.startswith("/") else here
        todo += target.split("/")[::-1]
    yield here
