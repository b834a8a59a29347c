"""What on this machine may a child reach? Decided from the profile and the call's demand, the same for every sandbox.

| profile | files | network |
| --- | --- | --- |
| restricted | the workspace, read | none |
| normal | the workspace, written except for what other programs obey | none |
| trusted | repositories and caches as well | what the operator lists, through the proxy |
| unrestricted | everything: no sandbox | everything |

A call that was granted only reading writes nowhere, whatever the profile.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

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


# Unlike the methods of `Path`, these are False if we may not look: that is no reason to refuse to start a child.
is_folder, is_there = os.path.isdir, os.path.exists


def find_program(name: str, search_path: str, workspace: Path) -> str | None:
    """Find a program that no command can have planted: neither its folder nor the file may lie in the workspace, even
    behind a link. Relative folders do not count; they would be looked for in the workspace."""
    for folder in search_path.split(os.pathsep):
        program = shutil.which(name, path=folder) if folder.startswith("/") else None
        if program and not any(
            Path(path).is_relative_to(workspace)
            for path in (program, os.path.realpath(folder), os.path.realpath(program))
        ):
            return program
    return None


class HostPaths(Struct, frozen=True, dict=True):
    """The paths and environment children start with; the same for every child, so what follows from them is worked out
    once."""

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
    """What menugate runs from, wherever that is."""

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

    @cached_property
    def private_inside(self) -> tuple[str, ...]:
        """The private places in the workspace, relative to it."""
        return tuple(inside for path in self.private if (inside := self.to_workspace_path(path)))

    @cached_property
    def emptied(self) -> tuple[str, ...]:
        """Folders of other people and programs, which a child sees empty. They may not exist."""
        # A service's home may be `/`: with that emptied, nothing would be left to run.
        own_home = () if self.home == Path("/") else (str(self.home),)
        return tuple(dict.fromkeys((*EMPTIED, *HOMES, *own_home)))

    @cached_property
    def lent(self) -> tuple[str, ...]:
        """Places with programs in those folders, which a child sees all the same. They may not exist."""
        return tuple(dict.fromkeys((*_list_below(self.home, TOOL_HOMES), *self._find_program_folders())))

    @cached_property
    def caches(self) -> tuple[str, ...]:
        return _list_below(self.home, CACHES)

    def _find_program_folders(self) -> Iterator[str]:
        """Yield the search-path folders that an emptied folder would remove. For a virtual environment, yield all of it
        and the Python it was made from. Folders in the workspace do not count: a child may have written what is there.
        """
        for folder in map(Path, self.search_path.split(os.pathsep)):
            if not folder.is_absolute() or self.to_workspace_path(os.path.realpath(folder)) is not None:
                continue
            config = folder.parent / "pyvenv.cfg"
            if self._is_emptied(folder):
                is_environment = is_there(config) or is_folder(folder.parent / "conda-meta")
                yield str(folder.parent if is_environment else folder)
            base = _find_base_python(config)
            if base is not None and self._is_emptied(base) and self.to_workspace_path(base) is None:
                yield str(base)
        # Programs installed together with us run on the same Python as we do.
        for ours in map(Path, (sys.prefix, sys.base_prefix)):
            if self._is_emptied(ours) and self.to_workspace_path(ours) is None:
                yield str(ours)

    def _is_emptied(self, path: Path) -> bool:
        return any(str(path).startswith(f"{folder}/") for folder in self.emptied)


class ChildAccess(Struct, frozen=True):
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
    """Not even readable. Of nested paths only the outer one."""
    hidden_around: tuple[str, ...] = ()
    """The same for folders around the workspace, which must stay visible itself."""
    installed: tuple[str, ...] = ()
    """What menugate itself runs from: readable; neither changed nor moved, even if everything around it or in it is
    open."""
    opened: tuple[str, ...] = ()
    """Folders that may be written in a workspace that may not."""
    shown: tuple[str, ...] = ()
    """Readable, even in a hidden place."""
    own: tuple[str, ...] = ()
    """Writable, even in a hidden place."""

    def is_opened(self, path: str) -> bool:
        """May it be written, unless it is guarded?"""
        return self.writable or _is_in_any(path, self.opened)


def build_child_access(
    host: HostPaths, protected: ProtectedPaths, profile: Profile, demand: Demand, command: Command, folder: str
) -> ChildAccess:
    changing = not command.read_only and profile is not Profile.RESTRICTED and demand.effect not in READING
    trusted = profile.covers(Profile.TRUSTED)
    guarded, held = _sort_protected_paths(host.workspace, protected, command.writable, trusted)
    secret = () if command.sees_secrets else protected.secret
    caches = tuple(filter(is_there, host.caches)) if trusted and changing else ()
    workspace = str(host.workspace)
    installed = host.find_installation_inside((workspace, *caches))
    installed_inside = [inside for one in installed if (inside := host.to_workspace_path(one)) not in (None, ".")]
    writable = changing and workspace not in installed
    entrusted = [str(host.workspace / path) for path in command.writable] if writable else []
    in_workspace = f"{workspace}/".__add__
    private = (*filter(is_there, map(str, host.private)), *filter(is_there, SECRETS_OF_THE_MACHINE))
    hidden_around, hidden = find_outermost((*private, *map(in_workspace, secret)), workspace)
    above = _find_folders_above((*guarded, *held, *secret, *host.private_inside, *installed_inside), guarded)
    return ChildAccess(
        workspace=workspace,
        folder=folder,
        writable=writable,
        network=trusted and changing,
        # Looked up for every child: what appears while the server runs is hidden, too.
        emptied=tuple(path for path in host.emptied if is_folder(path) and not Path(path).is_symlink()),
        lent=tuple(filter(is_there, (*host.lent, *command.lent))),
        caches=caches,
        guarded=tuple(map(in_workspace, guarded)),
        held=tuple(map(in_workspace, held)),
        pinned=tuple(map(in_workspace, above)),
        entrusted=tuple(path for path in entrusted if not _is_in_any(path, installed)),
        hidden=hidden,
        hidden_around=hidden_around,
        installed=installed,
    )


def _sort_protected_paths(
    workspace: Path, protected: ProtectedPaths, opened: tuple[str, ...], trusted: bool
) -> tuple[list[str], list[str]]:
    """Return what must stay unchanged, and what may be changed but not moved. Hooks and git's configuration decide what
    runs next time, so they are never opened."""
    guarded = [part for path in protected.guarded for part in _find_unopened_parts(opened, workspace, path)]
    held: list[str] = []
    for repository in protected.repositories:
        if trusted or repository in opened:
            held.append(repository)
            inner = [path for path in protected.inner if path.startswith(f"{repository}/")]
            guarded += [f"{folder}/{name}" for folder in (repository, *inner) for name in OBEYED_BY_GIT]
        else:
            guarded.append(repository)
    # What git keeps for a submodule or a linked worktree lies inside another repository's folder.
    for path in opened:
        if GIT in path.split("/"):
            held.append(path)
            guarded += [f"{path}/{name}" for name in (*OBEYED_BY_GIT, *OTHERS_IN_GIT)]
    return [path for path in dict.fromkeys(guarded) if path not in opened], list(dict.fromkeys(held))


def _find_unopened_parts(opened: Sequence[str], workspace: Path, path: str) -> Iterator[str]:
    """Yield the parts of a place that stay closed when others in it are opened. The folder itself cannot stay closed:
    replacing a file means writing to its folder."""
    if path in opened:
        return
    if not any(inner.startswith(f"{path}/") for inner in opened):
        yield path
        return
    for entry in sorted((workspace / path).iterdir()) if (workspace / path).is_dir() else ():
        yield from _find_unopened_parts(opened, workspace, f"{path}/{entry.name}")


def _is_in_any(path: str, folders: Sequence[str]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _find_folders_above(paths: Sequence[str], guarded: Sequence[str]) -> list[str]:
    """List every folder around these paths, except those in a guarded place, which cannot change anyway."""
    folders = {str(folder) for path in paths for folder in Path(path).parents} - {"."}
    closed = tuple(f"{path}/" for path in guarded)
    return sorted(folder for folder in folders if not f"{folder}/".startswith(closed))


def find_outermost(hidden: Iterable[str], workspace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths around the workspace and the others, without those inside another hidden one: nothing can be
    mounted over what is no longer visible. Hiding a folder around the workspace does not hide what lies in it."""
    paths = dict.fromkeys(hidden)
    around = {path for path in paths if workspace.startswith(f"{path}/")}
    outermost: list[str] = []
    for path in paths:
        above = paths.keys() & map(str, Path(path).parents)
        if not (above - around if path.startswith(f"{workspace}/") else above):
            outermost.append(path)
    return tuple(filter(around.__contains__, outermost)), tuple(path for path in outermost if path not in around)


def _list_below(home: Path, names: str) -> tuple[str, ...]:
    return tuple(str(home / name) for name in names.split())


def _find_base_python(config: Path) -> Path | None:
    """Find the Python that a virtual environment was made from."""
    try:
        match = re.search(r"^home\s*=\s*(/\S.*?)\s*$", config.read_text(), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return Path(match[1]).parent if match else None
