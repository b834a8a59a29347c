"""What do the servers that run here judge by? By what they judge, the person's commands judge too."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.cli.command import law_of, settings_of
from mcp_server.cli.paper import Trouble, note, when

if TYPE_CHECKING:
    from mcp_server.law import Law
    from mcp_server.settings import Settings
    from mcp_server.state.lives import Server


@dataclass(frozen=True, slots=True)
class Judging:
    """What is judged by, whose it is, and which servers there are."""

    settings: "Settings"
    law: "Law"
    server: "Server | None" = None
    """Whose it is; None where none runs, where several differ, or where a configuration was named."""
    servers: "Sequence[Server]" = ()


def running(settings: "Settings") -> "list[Server]":
    from mcp_server.state.lives import servers

    return servers(settings.state)


def add_server(one: argparse.ArgumentParser) -> None:
    one.add_argument("--server", type=int, metavar="PID", help="as this running server judges, where there are several")


def judging(arguments: argparse.Namespace, strict: bool = False) -> Judging:
    """As the server that runs here judges; by what is on disk where none does, or where a configuration was named.
    `strict`: several that differ are told, for who asks about one call can be given one answer only."""
    settings = settings_of(arguments)
    found, one = running(settings), meant(arguments, settings, strict)
    if one is None:
        return Judging(settings, law_of(arguments, settings), None, found)
    served = settings_of_server(settings, one)
    return Judging(served, law_of_server(arguments, served, one), one, found)


def meant(arguments: argparse.Namespace, settings: "Settings", strict: bool = False) -> "Server | None":
    """The server by which is judged; None where none runs, where several differ, or where a configuration was named."""
    found, wish = running(settings), getattr(arguments, "server", None)
    if wish is not None and (arguments.config or wish not in [one.pid for one in found]):
        raise Trouble(f"no server of this folder is process {wish} here; `menugate status` names them.", code=2)
    if arguments.config:
        return None
    different = {key_of(one): one for one in found if wish in (None, one.pid)}
    if len(different) > 1 and strict:
        raise Trouble(f"{len(different)} servers here judge differently:\n{each(found)}\nName one with --server PID.")
    return next(iter(different.values())) if len(different) == 1 else None


def key_of(one: "Server") -> tuple[object, ...]:
    texts = tuple(sorted(one.texts.items()))
    return one.config, one.profile, one.max_profile, tuple(one.menus), texts


def settings_of_server(settings: "Settings", one: "Server") -> "Settings":
    from mcp_server.model.posture import Profile

    return replace(
        settings,
        config=Path(one.config) if one.config else None,
        menus=tuple(map(Path, one.menus)),
        profile=settings.profile or (Profile(one.profile) if one.profile else None),
        max_profile=settings.max_profile or (Profile(one.max_profile) if one.max_profile else None),
    )


def law_of_server(arguments: argparse.Namespace, settings: "Settings", one: "Server") -> "Law":
    """What is on disk, and where that does not count, what the server says it was."""
    from mcp_server.law import Law, law

    if one.fault:
        found = law(settings, arguments.packs, texts={Path(path): text for path, text in one.texts.items()})
        if isinstance(found, Law):
            return found
    return law_of(arguments, settings)


def each(found: "Sequence[Server]") -> str:
    return "\n".join(f"  process {one.pid}: {', '.join([config_of(one), *flags_of(one)])}" for one in found)


def config_of(one: "Server") -> str:
    return one.config or "no configuration"


def flags_of(one: "Server") -> list[str]:
    flags = (("--profile", one.profile), ("--max-profile", one.max_profile))
    return [f"{flag} {value}" for flag, value in flags if value]


def note_servers(found: Judging) -> None:
    """On stderr, beside what was asked for: by what it was judged, and what does not hold in a running server."""
    if found.server is not None and found.server.config:
        note(f"Judged as the running server does (process {found.server.pid}), by {found.server.config}.")
    for one in found.servers:
        for told in one.differs:
            note(told)
        if found.server is None and one.config != (str(found.settings.config) if found.settings.config else None):
            note(f"Process {one.pid} judges by {config_of(one)}.")


def in_json(one: "Server") -> dict[str, Any]:
    return {
        "pid": one.pid,
        "config": one.config,
        "profile": one.profile,
        "max_profile": one.max_profile,
        "since": when(one.since),
        "fault": one.fault or None,
        "restart": list(one.restart),
    }
