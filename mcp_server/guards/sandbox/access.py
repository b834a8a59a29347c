"""What of this machine may one child reach? As the person's profile and the call's demand say, for any sandbox.

| profile | files | network |
| --- | --- | --- |
| restricted | the workspace, read | none |
| normal | the workspace, written but for what other programs obey | none |
| trusted | repositories and caches as well | what the operator lists, through the proxy |
| unrestricted | everything: no sandbox | everything |

A call that was granted reading writes nowhere, whoever makes it.
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
"""Where programs and their packages are kept below a home; none of it is anybody's password."""
HOMES = ("/home", "/root", "/Users")
SECRETS_OF_THE_MACHINE = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/ssh", "/etc/wireguard", "/etc/NetworkManager", "/var/lib/docker", "/var/log"),
)
EMPTIED = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev/shm")  # noqa: S108  # what is there belongs to others


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Where children are started at all; the same for every one of them."""

    workspace: Path
    home: Path
    private: tuple[Path, ...] = ()
    """Our own places, which no child sees."""
    search_path: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What every child is told of the environment."""
    outside: Mapping[str, str] = field(default_factory=dict[str, str])
    """What those are told besides that run in no sandbox."""
    installation: tuple[Path, ...] = ()
    """What we run from, wherever that lies."""

    def to_workspace_path(self, path: str | Path) -> str | None:
        """A path below the workspace, None where it lies elsewhere."""
        try:
            return str(Path(path).relative_to(self.workspace))
        except ValueError:
            return None

    def find_installation_inside(self, folders: Sequence[str]) -> tuple[str, ...]:
        """What of our installation lies in these folders, or is one of them."""
        found = {str(one) for one in self.installation if any(one.is_relative_to(folder) for folder in folders)}
        return tuple(sorted(one for one in found if found.isdisjoint(map(str, Path(one).parents))))


@dataclass(frozen=True, slots=True)
class ChildAccess:
    """Whole paths throughout."""

    workspace: str
    folder: str
    writable: bool
    network: bool
    emptied: tuple[str, ...]
    """Folders in whose place there is an empty one."""
    lent: tuple[str, ...]
    """Parts of those that are there all the same, to be read."""
    caches: tuple[str, ...]
    """The same, to be written as well."""
    guarded: tuple[str, ...]
    """Below the workspace: read, not changed, not moved."""
    held: tuple[str, ...]
    """Below the workspace: changed, and not moved away."""
    pinned: tuple[str, ...]
    """The same for the folders that any of this lies in: elsewhere it would be looked for by another name, or not at
    all, and another one could be put in its place."""
    entrusted: tuple[str, ...]
    """What a program keeps that is trusted with it, whole."""
    hidden: tuple[str, ...]
    """Not even read; of what lies in each other the outer one alone, unless the workspace lies between."""
    installed: tuple[str, ...] = ()
    """What we run from ourselves: read, not changed, not moved, whatever else is open around it or in it."""

    @property
    def hidden_above_workspace(self) -> tuple[str, ...]:
        """Those of the hidden in which the workspace lies, and is to be seen all the same."""
        return tuple(one for one in self.hidden if self.workspace.startswith(f"{one}/"))

    @property
    def hidden_elsewhere(self) -> tuple[str, ...]:
        """The others."""
        return tuple(one for one in self.hidden if not self.workspace.startswith(f"{one}/"))


def is_folder(path: str | Path) -> bool:
    """Not where nobody of ours may look: that is the same to a child, and no reason to start none."""
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
    # A service's home may be `/`: emptied, nothing would be left to run.
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
    """What stays as it is, and what may be changed but not be put elsewhere. Hooks and git's configuration decide
    what runs next time, and open to nobody."""
    guarded = [part for one in places.guarded for part in _find_unopened_parts(opened, ground.workspace, one)]
    held: list[str] = []
    for one in places.repositories:
        if trusted or one in opened:
            held.append(one)
            inside = [inner for inner in places.inner if inner.startswith(f"{one}/")]
            guarded += [f"{folder}/{name}" for folder in (one, *inside) for name in OBEYED_BY_GIT]
        else:
            guarded.append(one)
    # What git keeps for a submodule or a linked worktree lies inside of another repository's folder.
    for one in opened:
        if GIT in one.split("/"):
            held.append(one)
            guarded += [f"{one}/{name}" for name in (*OBEYED_BY_GIT, *OTHERS_IN_GIT)]
    return [one for one in dict.fromkeys(guarded) if one not in opened], list(dict.fromkeys(held))


def _find_unopened_parts(opened: Sequence[str], workspace: Path, one: str) -> Iterator[str]:
    """What stays of a place without what is opened in it: a file can only be put anew in a folder that is written."""
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
    """Every folder that one of these lies in, but not those that are read and not changed as they are."""
    whole = {one for path in paths for one in map(str, Path(path).parents) if one != "."}
    fixed = tuple(f"{one}/" for one in guarded)
    return sorted(one for one in whole if not f"{one}/".startswith(fixed))


def _find_hidden_paths(ground: HostPaths, places: ProtectedPaths) -> Iterator[str]:
    yield from (str(one) for one in ground.private if is_there(one))
    yield from (f"{ground.workspace}/{one}" for one in places.secret)
    yield from (one for one in SECRETS_OF_THE_MACHINE if is_there(one))


def find_outermost(hidden: Iterable[str], workspace: str) -> tuple[str, ...]:
    """Without what lies in another of them: nothing can be put over what is not to be seen any more. What hides a
    folder above the workspace does not hide what lies in the workspace."""
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
    """Folders of the search path that an emptied folder would take away; of an environment, all of it, and the Python
    it is made of, wherever that lies."""

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
    # What was installed together with us runs on the Python that we run on.
    yield from (
        one
        for one in (sys.prefix, sys.base_prefix)
        if is_covered(Path(one)) and ground.to_workspace_path(Path(one)) is None
    )


def _find_base_python(made: Path) -> Path | None:
    """Where the Python lies that an environment was made from."""
    try:
        found = re.search(r"^home\s*=\s*(/\S.*?)\s*$", made.read_text(), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return Path(found[1]).parent if found else None
