"""What on this machine may one child reach? Decided from the person's profile and the call's demand, for any sandbox.

| profile | files | network |
| --- | --- | --- |
| restricted | the workspace, read | none |
| normal | the workspace, written except for what other programs obey | none |
| trusted | repositories and caches as well | what the operator lists, through the proxy |
| unrestricted | everything: no sandbox | everything |

A call that was granted only reading writes nowhere, whatever the profile.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.guards.sandbox.protected import GIT, OBEYED_BY_GIT, OTHERS_IN_GIT, ProtectedPaths
from mcp_server.model.posture import Profile
from mcp_server.model.processes import CACHES, Command
from mcp_server.model.tools import READING, Demand

TOOL_HOMES = """
.pyenv .rbenv .nodenv .asdf .nvm .volta .fnm .bun .deno .sdkman .jenv .rustup .cargo/bin .cargo/registry .cargo/git
.cargo/env .local/bin .local/lib .local/share/uv .local/share/mise .local/share/pnpm .local/share/fnm .local/pipx
.local/share/pipx go .go .ghcup .opam .gradle/caches .gradle/wrapper .m2/repository .m2/wrapper .npm/_cacache
.cache/pip .cache/uv .cache/go-build .cache/pypoetry .cache/yarn .cache/pre-commit .pnpm-store miniconda3 miniforge3
anaconda3 .dotnet .nuget/packages .pub-cache .conan2 .ccache
"""
"""Where programs and their packages are kept below a home; none of it holds passwords."""
HOMES = ("/home", "/root", "/Users")
SECRETS_OF_THE_MACHINE = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/ssh", "/etc/wireguard", "/etc/NetworkManager", "/var/lib/docker", "/var/log"),
)
EMPTIED = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev/shm")  # noqa: S108  # what is there belongs to others


@dataclass(frozen=True, slots=True)
class HostPaths:
    """The paths and environment children start with; the same for every child."""

    workspace: Path
    home: Path
    private: tuple[Path, ...] = ()
    """menugate's own places, which no child sees."""
    search_path: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The environment that every child gets."""
    outside: Mapping[str, str] = field(default_factory=dict[str, str])
    """Additional environment for children without a sandbox."""
    installation: tuple[Path, ...] = ()
    """What menugate runs from, wherever that lies."""

    def to_workspace_path(self, path: str | Path) -> str | None:
        """Return a path relative to the workspace, or None if it lies elsewhere."""
        try:
            return str(Path(path).relative_to(self.workspace))
        except ValueError:
            return None

    def find_installation_inside(self, folders: Sequence[str]) -> tuple[str, ...]:
        """Find the parts of our installation that lie in these folders or are one of them."""
        found = {str(one) for one in self.installation if any(one.is_relative_to(folder) for folder in folders)}
        return tuple(sorted(one for one in found if found.isdisjoint(map(str, Path(one).parents))))


@dataclass(frozen=True, slots=True)
class ChildAccess:
    """All paths are absolute."""

    workspace: str
    folder: str
    writable: bool
    network: bool
    emptied: tuple[str, ...]
    """Folders replaced by an empty one."""
    lent: tuple[str, ...]
    """Parts of those that are visible all the same, read-only."""
    caches: tuple[str, ...]
    """The same, but writable."""
    guarded: tuple[str, ...]
    """Below the workspace: readable; neither changed nor moved."""
    held: tuple[str, ...]
    """Below the workspace: may be changed, but not moved away."""
    pinned: tuple[str, ...]
    """The same for the folders around any of these. If one were moved, its contents would be found under another name
    or not at all, and another folder could be put in its place."""
    entrusted: tuple[str, ...]
    """Places that a program is trusted with as a whole."""
    hidden: tuple[str, ...]
    """Not even readable. Of nested paths only the outer one, unless the workspace lies between."""
    installed: tuple[str, ...] = ()
    """What menugate itself runs from: readable; neither changed nor moved, even if everything around it or in it is
    open."""

    @property
    def hidden_above_workspace(self) -> tuple[str, ...]:
        """The hidden paths around the workspace, which must stay visible itself."""
        return tuple(one for one in self.hidden if self.workspace.startswith(f"{one}/"))

    @property
    def hidden_elsewhere(self) -> tuple[str, ...]:
        """The other hidden paths."""
        return tuple(one for one in self.hidden if not self.workspace.startswith(f"{one}/"))


def is_folder(path: str | Path) -> bool:
    """False if we may not look: it makes no difference to the child, and is no reason to refuse to start one."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def is_there(path: str | Path) -> bool:
    try:
        return Path(path).exists()
    except OSError:
        return False


def is_sandbox_needed(profile: Profile, command: Command) -> bool:
    """Does this child need a sandbox at all?"""
    return command.read_only or profile is not Profile.UNRESTRICTED


def build_child_access(
    ground: HostPaths, places: ProtectedPaths, profile: Profile, demand: Demand, command: Command, folder: str
) -> ChildAccess:
    changing = not command.read_only and profile is not Profile.RESTRICTED and demand.effect not in READING
    trusted = profile.covers(Profile.TRUSTED)
    guarded, held = _sort_protected_paths(ground, places, command.writable, trusted)
    whole = f"{ground.workspace}/".__add__
    unseen = [] if command.sees_secrets else list(places.secret)
    unseen += [inside for one in ground.private if (inside := ground.to_workspace_path(one))]
    # A service's home may be `/`: with that emptied, nothing would be left to run.
    own = () if ground.home == Path("/") else (str(ground.home),)
    homes = tuple(dict.fromkeys([*(one for one in HOMES if is_folder(one)), *own]))
    caches = tuple(_find_existing_below(ground.home, CACHES)) if trusted and changing else ()
    installed = ground.find_installation_inside((str(ground.workspace), *caches))
    writable = changing and str(ground.workspace) not in installed
    inner = [inside for one in installed if (inside := ground.to_workspace_path(one)) not in (None, ".")]
    entrusted = [str(ground.workspace / one) for one in command.writable] if writable else []
    return ChildAccess(
        workspace=str(ground.workspace),
        folder=folder,
        writable=writable,
        network=trusted and changing,
        emptied=tuple(one for one in (*EMPTIED, *homes) if is_folder(one) and not Path(one).is_symlink()),
        lent=(
            *_find_existing_below(ground.home, TOOL_HOMES),
            *_find_program_folders(ground, homes),
            *filter(is_there, command.lent),
        ),
        caches=caches,
        guarded=tuple(map(whole, guarded)),
        held=tuple(map(whole, held)),
        pinned=tuple(map(whole, _find_folders_above((*guarded, *held, *unseen, *inner), guarded))),
        entrusted=tuple(one for one in entrusted if not _is_in_any(one, installed)),
        hidden=find_outermost(
            _find_hidden_paths(ground, ProtectedPaths() if command.sees_secrets else places), str(ground.workspace)
        ),
        installed=installed,
    )


def _sort_protected_paths(
    ground: HostPaths, places: ProtectedPaths, opened: tuple[str, ...], trusted: bool
) -> tuple[list[str], list[str]]:
    """Return what must stay unchanged, and what may be changed but not moved. Hooks and git's configuration decide what
    runs next time, so they are never opened."""
    guarded = [part for one in places.guarded for part in _find_unopened_parts(opened, ground.workspace, one)]
    held: list[str] = []
    for one in places.repositories:
        if trusted or one in opened:
            held.append(one)
            inside = [inner for inner in places.inner if inner.startswith(f"{one}/")]
            guarded += [f"{folder}/{name}" for folder in (one, *inside) for name in OBEYED_BY_GIT]
        else:
            guarded.append(one)
    # What git keeps for a submodule or a linked worktree lies inside another repository's folder.
    for one in opened:
        if GIT in one.split("/"):
            held.append(one)
            guarded += [f"{one}/{name}" for name in (*OBEYED_BY_GIT, *OTHERS_IN_GIT)]
    return [one for one in dict.fromkeys(guarded) if one not in opened], list(dict.fromkeys(held))


def _find_unopened_parts(opened: Sequence[str], workspace: Path, one: str) -> Iterator[str]:
    """Yield the parts of a place that stay closed when others in it are opened. The folder itself cannot stay closed:
    replacing a file means writing to its folder."""
    if one in opened:
        return
    if not any(inner.startswith(f"{one}/") for inner in opened):
        yield one
        return
    for entry in sorted((workspace / one).iterdir()) if (workspace / one).is_dir() else ():
        yield from _find_unopened_parts(opened, workspace, f"{one}/{entry.name}")


def _is_in_any(path: str, folders: Sequence[str]) -> bool:
    return any(f"{path}/".startswith(f"{one}/") for one in folders)


def _find_folders_above(paths: Sequence[str], guarded: Sequence[str]) -> list[str]:
    """List every folder around these paths, except those in a guarded place, which cannot change anyway."""
    whole = {one for path in paths for one in map(str, Path(path).parents) if one != "."}
    fixed = tuple(f"{one}/" for one in guarded)
    return sorted(one for one in whole if not f"{one}/".startswith(fixed))


def _find_hidden_paths(ground: HostPaths, places: ProtectedPaths) -> Iterator[str]:
    yield from (str(one) for one in ground.private if is_there(one))
    yield from (f"{ground.workspace}/{one}" for one in places.secret)
    yield from (one for one in SECRETS_OF_THE_MACHINE if is_there(one))


def find_outermost(hidden: Iterable[str], workspace: str) -> tuple[str, ...]:
    """Drop paths inside another hidden one: nothing can be mounted over what is no longer visible. Hiding a folder
    above the workspace does not hide what lies in the workspace."""
    every = dict.fromkeys(hidden)
    around = {one for one in every if workspace.startswith(f"{one}/")}

    def is_covered(one: str) -> bool:
        above = {str(folder) for folder in Path(one).parents} & every.keys()
        return bool(above - around if one.startswith(f"{workspace}/") else above)

    return tuple(one for one in every if not is_covered(one))


def _find_existing_below(home: Path, names: str) -> Iterator[str]:
    for name in names.split():
        if is_there(home / name):
            yield str(home / name)


def _find_program_folders(ground: HostPaths, homes: tuple[str, ...]) -> Iterator[str]:
    """Yield the search-path folders that an emptied folder would remove. For a virtual environment, yield all of it and
    the Python it was made from, wherever that lies."""

    def is_covered(place: Path) -> bool:
        return any(str(place).startswith(f"{one}/") for one in (*EMPTIED, *homes))

    for entry in ground.search_path.split(":"):
        folder = Path(entry)
        if not is_folder(folder) or ground.to_workspace_path(folder) is not None:
            continue
        made = folder.parent / "pyvenv.cfg"
        if is_covered(folder):
            whole = is_there(made) or is_folder(folder.parent / "conda-meta")
            yield str(folder.parent if whole else folder)
        base = _find_base_python(made)
        if base is not None and is_covered(base) and is_folder(base) and ground.to_workspace_path(base) is None:
            yield str(base)
    # Programs installed together with us run on the same Python as we do.
    yield from (
        one
        for one in (sys.prefix, sys.base_prefix)
        if is_covered(Path(one)) and ground.to_workspace_path(Path(one)) is None
    )


def _find_base_python(made: Path) -> Path | None:
    """Find the Python that a virtual environment was made from."""
    try:
        found = re.search(r"^home\s*=\s*(/\S.*?)\s*$", made.read_text(), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return Path(found[1]).parent if found else None
